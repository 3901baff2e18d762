package ready_test

import (
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

// ruleFile is a file of rules for Prometheus.
type ruleFile struct {
	Groups []struct {
		Name  string
		Rules []rule
	}
}

type rule struct {
	Record, Alert, Expr, For string
	Labels, Annotations      map[string]string
}

// The type rules has the recording rules, the alerts, and the metrics that they can use.
type rules struct {
	recorded, alerts []rule
	metrics          metrics // of the code and of the recording rules
}

// readRules reads the two files of rules.
func readRules(recording, alerts string, m metrics) (r rules, wrong []string) {
	r.metrics = maps.Clone(m)
	for _, file := range []struct {
		text string
		to   *[]rule
	}{{recording, &r.recorded}, {alerts, &r.alerts}} {
		var f ruleFile
		if err := yaml.Unmarshal([]byte(file.text), &f); err != nil {
			return r, []string{err.Error()}
		}
		for _, group := range f.Groups {
			*file.to = append(*file.to, group.Rules...)
		}
	}
	for _, one := range r.recorded {
		q := parse(one.Expr)
		labels := make(map[string]map[string]bool)
		for _, label := range q.labels { // a recorded series takes the values of this label from the metrics in its expression
			labels[label] = make(map[string]bool)
			for _, s := range q.selectors {
				maps.Copy(labels[label], m[s.metric][label])
			}
		}
		r.metrics[one.Record] = labels
		for _, w := range q.mistakes(m) {
			wrong = append(wrong, one.Record+": "+w)
		}
	}
	return r, wrong
}

var (
	severities = []string{"critical", "warning"}
	inTemplate = regexp.MustCompile(`\$labels\.(\w+)`)
	section    = regexp.MustCompile(`^(docs/[a-z-]+\.md)#([a-z0-9-]+)$`)
	heading    = regexp.MustCompile(`(?m)^#+ (.*)$`)
	notInLink  = regexp.MustCompile(`[^a-z0-9 -]`)
)

// sections returns the anchors of the headings of a page.
func sections(page string) (all []string) {
	for _, match := range heading.FindAllStringSubmatch(page, -1) {
		all = append(all, strings.ReplaceAll(notInLink.ReplaceAllString(strings.ToLower(match[1]), ""), " ", "-"))
	}
	return all
}

// This method returns what is wrong with the alerts.
func (r rules) mistakes() (wrong []string) {
	for _, a := range r.alerts {
		say := func(format string, args ...any) { wrong = append(wrong, a.Alert+": "+fmt.Sprintf(format, args...)) }
		q := parse(a.Expr)
		for _, w := range q.mistakes(r.metrics) {
			say("%s", w)
		}
		if !slices.Contains(severities, a.Labels["severity"]) {
			say("the severity %q is not one of %q", a.Labels["severity"], severities)
		}
		labels := q.labels
		if len(labels) == 0 {
			for _, s := range q.selectors {
				labels = slices.AppendSeq(labels, maps.Keys(r.metrics[s.metric]))
			}
		}
		for _, match := range inTemplate.FindAllStringSubmatch(a.Annotations["summary"], -1) {
			if !slices.Contains(labels, match[1]) {
				say("the summary names the label %s, which the alert does not have", match[1])
			}
		}
		if a.Annotations["summary"] == "" {
			say("the summary is missing")
		}
		to := section.FindStringSubmatch(a.Annotations["see"])
		if to == nil {
			say("%q names no section of a page", a.Annotations["see"])
			continue
		}
		page, err := os.ReadFile(filepath.Join("..", "..", filepath.FromSlash(to[1])))
		if err != nil || !slices.Contains(sections(string(page)), to[2]) {
			say("there is no section %s", to[0])
		}
	}
	return wrong
}

// watched returns the metrics that the alerts look at, and the values that they look for.
func (r rules) watched() (names, values map[string]bool) {
	names, values = make(map[string]bool), make(map[string]bool)
	var look func(expr string)
	look = func(expr string) {
		for _, s := range parse(expr).selectors {
			for _, m := range s.matchers {
				for value := range strings.SplitSeq(m.value, "|") {
					values[value] = true
				}
			}
			names[s.metric] = true
			for _, one := range r.recorded {
				if one.Record == s.metric {
					look(one.Expr)
				}
			}
		}
	}
	for _, a := range r.alerts {
		look(a.Expr)
	}
	return names, values
}

// missing compares the alerts with docs/telemetry.md. The page says which metrics and values need
// an alert. The result names those that no alert looks at.
func (r rules) missing(page string) (wrong []string) {
	prometheus := make(map[string]string) // the name of each metric in Prometheus
	for _, row := range regexp.MustCompile("(?m)^\\| `([a-z._]+)` \\| `([a-z_]+)` \\| (?:counter|histogram|gauge) ").FindAllStringSubmatch(page, -1) {
		prometheus[row[1]] = row[2]
	}
	names, values := r.watched()
	alerts := 0
	for _, item := range regexp.MustCompile(`(?ms)^- (\*\*.*?)(?:^- \*\*|^$)`).FindAllStringSubmatch(strings.ReplaceAll(page, "\n- **", "\n\n- **"), -1) {
		at := strings.Index(strings.ToLower(item[1]), "raise an alert")
		if at < 0 {
			continue
		}
		alerts++
		for _, bold := range regexp.MustCompile("\\*\\*`([a-z._]+)`\\*\\*").FindAllStringSubmatch(item[1], -1) {
			want := prometheus[bold[1]]
			if want == "" || !names[want] && !names[want+"_count"] {
				wrong = append(wrong, fmt.Sprintf("no alert looks at %s", bold[1]))
			}
		}
		sentence, _, _ := strings.Cut(item[1][at:], ".")
		for _, value := range regexp.MustCompile("`([a-z_]+)`").FindAllStringSubmatch(sentence, -1) {
			if value[1] != "revoke" && !values[value[1]] {
				wrong = append(wrong, fmt.Sprintf("no alert looks for %s", value[1]))
			}
		}
	}
	if alerts < 7 || len(prometheus) < 14 {
		wrong = append(wrong, fmt.Sprintf("only %d alerts and %d metrics were found on the page", alerts, len(prometheus)))
	}
	return wrong
}

func TestTheRulesUseWhatTheCodeExports(t *testing.T) {
	m := exported(t)
	recording, alerts := deployed(t, "prometheus/recording.yaml"), deployed(t, "prometheus/alerts.yaml")
	telemetry, err := os.ReadFile(filepath.Join("..", "..", "docs", "telemetry.md"))
	must(t, err)
	all := func(recording, alerts, page string) []string {
		r, wrong := readRules(recording, alerts, m)
		return append(append(wrong, r.mistakes()...), r.missing(page)...)
	}
	for _, w := range all(recording, alerts, string(telemetry)) {
		t.Error(w)
	}
	// Make one mistake at a time, to show that every comparison can fail.
	for _, c := range []struct{ old, new, want string }{
		{"tripseal_store_held / ", "tripseal_store_hold / ", "there is no metric tripseal_store_hold"},
		{"tripseal_operations_total{error_type!=", "tripseal_operations_total{reason!=", "tripseal_operations_total has no label reason"},
		{"by (job, error_type)", "by (job, reason)", "no metric here has the label reason"},
		{`"open|open_cursor"`, `"open|next_cursor"`, "is never next_cursor"},
		{"job:tripseal_store_held:ratio", "job:tripseal_store_full:ratio", "there is no metric job:tripseal_store_held:ratio"},
	} {
		notice(t, c.new, all(replaced(t, recording, c.old, c.new), alerts, string(telemetry)), c.want)
	}
	for _, c := range []struct{ old, new, want string }{
		{"tripseal_keys_unusable >", "tripseal_keys_unsable >", "there is no metric tripseal_keys_unsable"},
		{"tripseal_keys_unusable >", "0 >", "no alert looks at tripseal.keys.unusable"},
		{"tripseal_keys_late_total", "tripseal_keys_revoked_total", "no alert looks at tripseal.keys.late"},
		{`error_type="store_failed"`, `error_type="storage_failed"`, "is never storage_failed"},
		{`error_type="unknown_key"`, `error_type="user"`, "no alert looks for unknown_key"},
		{`codec_failed|principal_failed`, `codec_failed`, "no alert looks for principal_failed"},
		{`full|timeout|error`, `full|error`, "no alert looks for timeout"},
		{`tripseal_store_result=~`, `store_result=~`, "has no label store_result"},
		{"on (job, instance)", "on (job, pod)", "no metric here has the label pod"},
		{"severity: critical", "severity: page", "the severity"},
		{"$labels.error_type", "$labels.reason", "names the label reason"},
		{"summary: ", "summery: ", "the summary is missing"},
		{"see: docs/operations.md#single-use", "see: docs/operations.md", "names no section"},
		{"docs/operations.md#single-use", "docs/operations.md#double-use", "there is no section"},
	} {
		notice(t, c.new, all(recording, replaced(t, alerts, c.old, c.new), string(telemetry)), c.want)
	}
	page := replaced(t, string(telemetry), "counts keys that were revoked while they still opened tokens.", "counts revoked keys. Raise an alert on `misuse`.")
	notice(t, "the page", all(recording, alerts, page), "no alert looks for misuse")
}

// TestEveryAlertIsTested checks that tests.yaml has a test for each alert. The test must have a
// time at which the alert fires, and another time at which no alert fires.
func TestEveryAlertIsTested(t *testing.T) {
	type test struct {
		Tests []struct {
			Name  string
			Tests []struct {
				Expr    string
				Samples []struct{ Labels string } `yaml:"exp_samples"`
			} `yaml:"promql_expr_test"`
		}
	}
	untested := func(text string) (wrong []string) {
		var file test
		must(t, yaml.Unmarshal([]byte(text), &file))
		r, _ := readRules(deployed(t, "prometheus/recording.yaml"), deployed(t, "prometheus/alerts.yaml"), metrics{})
		for _, a := range r.alerts {
			fires, silent := false, false
			for _, one := range file.Tests {
				here := 0
				for _, at := range one.Tests {
					for _, sample := range at.Samples {
						if strings.Contains(sample.Labels, `alertname="`+a.Alert+`"`) {
							here++
						}
					}
				}
				fires = fires || here > 0
				for _, at := range one.Tests { // the same series, at another time
					silent = silent || here > 0 && strings.HasPrefix(at.Expr, "ALERTS") && len(at.Samples) == 0
				}
			}
			if !fires || !silent {
				wrong = append(wrong, fmt.Sprintf("%s: fires %v, silent %v", a.Alert, fires, silent))
			}
		}
		for _, one := range r.recorded {
			if !strings.Contains(text, one.Record) && !strings.Contains(deployed(t, "prometheus/alerts.yaml"), one.Record) {
				wrong = append(wrong, one.Record+" is neither tested nor used")
			}
		}
		return wrong
	}
	text := deployed(t, "prometheus/tests.yaml")
	for _, w := range untested(text) {
		t.Error(w)
	}
	notice(t, "without a test", untested(strings.ReplaceAll(text, "TripsealKeyLate", "TripsealKey")), "TripsealKeyLate: fires false")
	notice(t, "without a test", untested(strings.ReplaceAll(text, "job_operation:tripseal", "x")), "neither tested nor used")
}

func TestPromtoolAcceptsAndTestsTheRules(t *testing.T) {
	promtool := tool(t, "TRIPSEAL_PROMTOOL", "promtool")
	folder := filepath.Join("..", "..", "deploy", "prometheus")
	run := func(args ...string) string {
		cmd := exec.CommandContext(t.Context(), promtool, args...)
		cmd.Dir = folder
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Errorf("promtool %q: %v\n%s", args, err, out)
		}
		return string(out)
	}
	run("check", "rules", "--lint-fatal", "recording.yaml", "alerts.yaml")
	if out := run("test", "rules", "tests.yaml"); !strings.Contains(out, "SUCCESS") {
		t.Error(out)
	}
}
