package probe

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"strings"
)

// WriteText writes the report for a terminal of 80 columns. Only requests and URLs may be
// longer: they are never broken into lines, so that they can be copied.
func (r *Report) WriteText(w io.Writer, colour bool) error {
	v := r.view(1200).orNothing()
	var out bytes.Buffer
	t := &terminal{out: &out, width: 80, colour: colour}

	tone := map[int]string{ExitNothing: green, ExitFinding: red}[r.Exit]
	if tone == "" {
		tone = yellow
	}
	for _, line := range wrap(v.Report.Verdict, t.width) {
		fmt.Fprintln(&out, t.style(tone, line))
	}
	fmt.Fprintln(&out)
	server := v.Server
	if v.ServerName != "" {
		server += " (" + v.ServerName + ")"
	}
	t.field("Server", server)
	t.field("Over", v.Transport)
	t.field("Date", v.Date)
	t.field("Targets", strings.Join(v.Targets, ", "))
	t.field("Cursors", strings.Join(v.Cursors, ", "))
	t.field("Requests", fmt.Sprint(v.Requests))
	t.field("Ended", v.Problem)
	for _, note := range v.Notes {
		t.field("Note", note)
	}

	if len(v.Results) > 0 {
		t.heading("The attacks, worst first")
		fmt.Fprintln(&out, t.style(dim, pad("Verdict", verdictWidth)+pad("Attack", attackWidth)+"What was sent, and what came of it"))
	}
	for _, s := range v.Results {
		label := s.Verdict.label()
		if s.Verdict == Found {
			label = strings.TrimSpace("FINDING " + string(s.Severity))
		}
		t.row(t.style(tones[s.Verdict], pad(label, verdictWidth)), pad(s.ID, attackWidth), s.Title)
		switch s.Verdict {
		case Refused:
		case NotTried, Early:
			t.brief(s.Summary, 1)
		default:
			t.brief(s.Summary, 2)
		}
	}

	for _, part := range v.parts() {
		t.heading(part.Title)
		for i := range part.Results {
			if i > 0 {
				fmt.Fprintln(&out)
			}
			t.result(&part.Results[i], r.Transport)
		}
	}
	if all := v.untried(); len(all) > 0 {
		t.heading("What could not be tried, and why")
		for _, reason := range all {
			t.text(2, cmp.Or(reason.Why, "no reason is known")+":")
			var ids []string
			for _, s := range reason.Attacks {
				ids = append(ids, s.ID)
			}
			t.text(6, strings.Join(ids, ", "))
		}
		if len(v.having(Early)) > 0 {
			fmt.Fprintln(&out)
			t.text(2, earlyMeans)
		}
	}

	t.heading("In all")
	var counts []string
	for _, n := range v.tallies() {
		counts = append(counts, fmt.Sprintf("%d %s", n.Count, strings.ToLower(n.label())))
	}
	classes := counted(len(v.Results), "class of attacks", "classes of attacks") + ": " + strings.Join(counts, ", ")
	if len(v.Results) == 0 {
		classes = "No attack was tried"
	}
	t.text(2, classes+"; "+counted(v.Requests, "request", "requests")+".")
	t.text(2, limits)
	return writeAll(w, &out)
}

// The colours and styles, as codes of ANSI terminals.
const (
	bold   = "1"
	dim    = "2"
	red    = "1;31"
	yellow = "1;33"
	green  = "32"
)

var tones = map[Verdict]string{
	Found: red, Unclear: yellow, AcceptedRisk: "35", Information: "36", NotTried: dim, Early: dim, Refused: green,
}

const (
	verdictWidth = 15
	attackWidth  = 21
	tableIndent  = verdictWidth + attackWidth
)

// terminal writes text, and breaks long lines.
type terminal struct {
	out    *bytes.Buffer
	width  int // the maximum length of a line, in columns
	colour bool
}

func (t *terminal) style(code, text string) string {
	if !t.colour || text == "" {
		return text
	}
	return "\x1b[" + code + "m" + text + "\x1b[0m"
}

func (t *terminal) heading(text string) {
	fmt.Fprintf(t.out, "\n%s\n\n", t.style(bold, strings.ToUpper(text)))
}

// text writes a paragraph.
func (t *terminal) text(indent int, text string) {
	for _, line := range wrap(text, t.width-indent) {
		fmt.Fprintln(t.out, strings.Repeat(" ", indent)+line)
	}
}

// field writes a name and a text beside it. It writes nothing if the text is empty.
func (t *terminal) field(name, text string) {
	const indent = 12
	for i, line := range wrap(text, t.width-indent) {
		if i > 0 {
			name = ""
		}
		fmt.Fprintln(t.out, "  "+t.style(dim, pad(name, indent-2))+line)
	}
}

// row writes a row of the table. The caller has already padded the first two cells.
func (t *terminal) row(verdict, attack, title string) {
	for i, line := range wrap(title, t.width-tableIndent) {
		if i > 0 {
			verdict, attack = strings.Repeat(" ", tableIndent), ""
		}
		fmt.Fprintln(t.out, verdict+attack+line)
	}
}

// brief writes a text into the last column of the table, in at most maxLines lines.
func (t *terminal) brief(text string, maxLines int) {
	lines := wrap(text, t.width-tableIndent)
	if len(lines) > maxLines {
		lines = lines[:maxLines]
		lines[maxLines-1] = wrap(lines[maxLines-1], t.width-tableIndent-2)[0] + " …"
	}
	for _, line := range lines {
		fmt.Fprintln(t.out, strings.Repeat(" ", tableIndent)+t.style(dim, line))
	}
}

// result writes everything that is known of one attack.
func (t *terminal) result(s *shown, transport string) {
	title := s.ID
	if s.Verdict == Found && s.Severity != "" {
		title += ", " + string(s.Severity)
	}
	for _, line := range wrap(title+": "+s.Title, t.width) {
		fmt.Fprintln(t.out, t.style(bold, line))
	}
	if s.Verdict == Unclear {
		t.field("Why", s.Why)
	} else {
		t.field("Unclear", s.Why)
	}
	if len(s.Findings) > 0 {
		t.field("Means", s.Means)
		t.field("Fix", s.Fix)
		t.field("Section", s.Section.Title)
		if s.Section.URL != "" {
			fmt.Fprintln(t.out, strings.Repeat(" ", 12)+s.Section.URL)
		}
	}
	t.field("Answers", s.Tried)
	for i, f := range s.Findings {
		fmt.Fprintln(t.out)
		t.field(fmt.Sprintf("%d of %d", i+1, len(s.Findings)+s.More), f.title())
		for j, e := range f.Exchanges {
			if i > 0 && j < len(f.Exchanges)-1 {
				continue // the requests before the attack are much like those of the first finding
			}
			what := f.step(j)
			if transport == "stdio" {
				what += ", a line for the server's standard input"
			}
			fmt.Fprintf(t.out, "\n  %s:\n\n", t.style(dim, what))
			// Only spaces come before a request, so that it can be pasted into a shell.
			for _, line := range strings.Split(e.Curl, "\n") {
				fmt.Fprintln(t.out, "    "+line)
			}
			fmt.Fprintf(t.out, "\n  %s:\n\n", t.style(dim, e.answered()))
			// The bar marks the text that the server sent, so that nobody takes it for a part of
			// the report.
			for _, line := range strings.Split(e.Answer, "\n") {
				for _, piece := range pieces(strings.ReplaceAll(line, "\t", "  "), t.width-6) {
					fmt.Fprintln(t.out, strings.TrimRight("    | "+piece, " "))
				}
			}
		}
	}
	if s.More > 0 {
		fmt.Fprintln(t.out)
		t.text(2, fmt.Sprintf("%s of this attack in the JSON report.", counted(s.More, "more finding", "more findings")))
	}
}

// wrap breaks a text into lines, between words if it can. No line is longer than the given width,
// in columns.
func wrap(text string, width int) (lines []string) {
	var line string
	for _, word := range strings.Fields(text) {
		for i, piece := range pieces(word, width) {
			switch {
			case line == "":
				line = piece
			case i == 0 && columns(line)+1+columns(piece) <= width:
				line += " " + piece
			default:
				lines = append(lines, line)
				line = piece
			}
		}
	}
	if line != "" {
		lines = append(lines, line)
	}
	return lines
}

// pieces breaks a text into at least one piece. No piece is longer than the given width, in
// columns.
func pieces(text string, width int) (all []string) {
	start, used := 0, 0
	for i, char := range text {
		if wide := columns(string(char)); used+wide > width {
			all = append(all, text[start:i])
			start, used = i, wide
		} else {
			used += wide
		}
	}
	return append(all, text[start:])
}

func pad(text string, width int) string {
	return text + strings.Repeat(" ", max(1, width-columns(text)))
}

// columns returns how many columns a text takes on a terminal. If in doubt, it counts too many.
func columns(text string) (n int) {
	for _, char := range text {
		n++
		if char >= 0x1100 && (char < 0x2000 || char > 0x22ff) {
			n++
		}
	}
	return n
}
