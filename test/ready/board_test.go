package ready_test

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

// board is a dashboard of Grafana. It has only the parts that the tests check.
type board struct {
	Title, UID    string
	SchemaVersion int
	Templating    struct {
		List []struct {
			Name, Type, Definition string
			Query                  any
			Datasource             struct{ UID string }
		}
	}
	Panels []struct {
		ID                       int
		Type, Title, Description string
		GridPos                  struct{ H, W, X, Y int }
		Datasource               struct{ Type, UID string }
		Targets                  []struct {
			RefID, Expr, LegendFormat string
			Datasource                struct{ Type, UID string }
		}
	}
}

var (
	inLegend  = regexp.MustCompile(`\{\{(\w+)\}\}`)
	variables = regexp.MustCompile(`\$\w+`)
	values    = regexp.MustCompile(`^label_values\((\w+), (\w+)\)$`)
)

// boardMistakes returns what is wrong with a board, and all expressions of the board.
func boardMistakes(text string, m metrics) (wrong, exprs []string) {
	say := func(format string, args ...any) { wrong = append(wrong, fmt.Sprintf(format, args...)) }
	var b board
	if err := json.Unmarshal([]byte(text), &b); err != nil {
		return []string{err.Error()}, nil
	}
	if b.SchemaVersion < 38 || b.SchemaVersion > 41 || b.Title == "" || b.UID == "" {
		say("the board has the version %d, which is not of Grafana 10 or 11", b.SchemaVersion)
	}
	known := map[string]bool{"$__rate_interval": true}
	for _, v := range b.Templating.List {
		known["$"+v.Name] = true
		if v.Type != "query" {
			continue
		}
		match := values.FindStringSubmatch(v.Definition)
		if query, _ := v.Query.(map[string]any); match == nil || query["query"] != v.Definition || m[match[1]][match[2]] == nil {
			say("the variable %s has no values", v.Name)
		}
		if v.Datasource.UID != "${datasource}" {
			say("the data source of the variable %s is not the one that the user chose", v.Name)
		}
	}
	if !known["$datasource"] || !known["$job"] {
		say("the variables datasource and job are missing")
	}
	ids, taken, panels := make(map[int]bool), make(map[[2]int]string), 0
	for _, p := range b.Panels {
		if ids[p.ID] {
			say("%s: the id %d is used twice", p.Title, p.ID)
		}
		ids[p.ID] = true
		for x := p.GridPos.X; x < p.GridPos.X+p.GridPos.W; x++ {
			for y := p.GridPos.Y; y < p.GridPos.Y+p.GridPos.H; y++ {
				if other := taken[[2]int{x, y}]; other != "" || x >= 24 {
					say("%s: there is no room beside %q", p.Title, other)
				}
				taken[[2]int{x, y}] = p.Title
			}
		}
		if p.Type == "row" {
			continue
		}
		panels++
		if p.Title == "" || p.Description == "" || len(p.Targets) == 0 || p.GridPos.W*p.GridPos.H == 0 {
			say("%s: the title, the description, the size or the query is missing", p.Title)
		}
		refs := make(map[string]bool)
		for _, target := range p.Targets {
			if p.Datasource.UID != "${datasource}" || target.Datasource != p.Datasource || p.Datasource.Type != "prometheus" {
				say("%s: the data source is not the one that the user chose", p.Title)
			}
			if refs[target.RefID] || target.RefID == "" {
				say("%s: the query %q is there twice", p.Title, target.RefID)
			}
			refs[target.RefID] = true
			exprs = append(exprs, target.Expr)
			for _, variable := range variables.FindAllString(target.Expr, -1) {
				if !known[variable] {
					say("%s: there is no variable %s", p.Title, variable)
				}
			}
			if strings.Count(target.Expr, `{job=~"$job"`) != len(parse(target.Expr).selectors) {
				say("%s: a metric is not limited to the service that the user chose", p.Title)
			}
			q := parse(target.Expr)
			for _, w := range q.mistakes(m) {
				say("%s: %s", p.Title, w)
			}
			for _, label := range inLegend.FindAllStringSubmatch(target.LegendFormat, -1) {
				grouped := len(q.labels) == 0
				for _, by := range q.labels {
					grouped = grouped || by == label[1]
				}
				if len(q.selectors) == 0 || m[q.selectors[0].metric][label[1]] == nil || !grouped {
					say("%s: the legend names the label %s, which the result does not have", p.Title, label[1])
				}
			}
		}
	}
	if panels < 10 {
		say("the board has only %d panels", panels)
	}
	return wrong, exprs
}

func TestTheBoardUsesWhatTheCodeExports(t *testing.T) {
	m := exported(t)
	text := deployed(t, "grafana/tripseal.json")
	wrong, _ := boardMistakes(text, m)
	for _, w := range wrong {
		t.Error(w)
	}
	for name := range m { // the board shows every metric of tripseal
		base := strings.TrimSuffix(strings.TrimSuffix(strings.TrimSuffix(name, "_bucket"), "_sum"), "_count")
		if strings.HasPrefix(name, "tripseal_") && !strings.Contains(text, base) {
			t.Errorf("no panel shows %s", name)
		}
	}
	for _, c := range []struct{ old, new, want string }{
		{"tripseal_keys_opening{", "tripseal_keys_open{", "there is no metric tripseal_keys_open"},
		{"sum by (error_type)", "sum by (reason)", "no metric here has the label reason"},
		{`error_type!=\"\"`, `reason!=\"\"`, "has no label reason"},
		{"{{error_type}}", "{{reason}}", "the legend names the label reason"},
		{"{{error_type}}", "{{tripseal_operation}}", "the legend names the label tripseal_operation"},
		{"open|open_cursor", "open|next_cursor", "is never next_cursor"},
		{`{job=~\"$job\"}`, `{job=~\"$service\"}`, "there is no variable $service"},
		{`tripseal_keys_opening{job=~\"$job\"}`, `tripseal_keys_opening`, "is not limited to the service"},
		{"${datasource}", "prometheus-1", "the data source of the variable job"},
		{`"h": 8,`, `"w": 8,`, "the size"},
		{`"schemaVersion": 39`, `"schemaVersion": 16`, "the version 16"},
		{`"refId": "B"`, `"refId": "A"`, "is there twice"},
		{`"id": 3,`, `"id": 2,`, "is used twice"},
		{`"x": 8,`, `"x": 7,`, "there is no room"},
		{`"x": 16,`, `"x": 17,`, "there is no room"},
		{`label_values(tripseal_operations_total, job)`, `label_values(tripseal_operations, job)`, "the variable job has no values"},
		{`"name": "job"`, `"name": "service"`, "are missing"},
		{`"description": "Until`, `"about": "Until`, "the description"},
	} {
		changed := replaced(t, text, c.old, c.new)
		wrong, _ := boardMistakes(changed, m)
		notice(t, c.new, wrong, c.want)
	}
}

// TestPromtoolParsesTheBoard writes the expressions of the board to a file of rules, and lets
// promtool check them.
func TestPromtoolParsesTheBoard(t *testing.T) {
	promtool := tool(t, "TRIPSEAL_PROMTOOL", "promtool")
	_, exprs := boardMistakes(deployed(t, "grafana/tripseal.json"), metrics{})
	check := func(exprs ...string) (string, error) {
		var list []map[string]string
		for i, expr := range exprs {
			expr = strings.NewReplacer("$__rate_interval", "5m", "$job", ".+").Replace(expr)
			list = append(list, map[string]string{"record": fmt.Sprintf("expr:%d", i), "expr": expr})
		}
		text, err := yaml.Marshal(map[string]any{"groups": []any{map[string]any{"name": "board", "rules": list}}})
		must(t, err)
		file := filepath.Join(t.TempDir(), "rules.yaml")
		must(t, os.WriteFile(file, text, 0o600))
		out, err := exec.CommandContext(t.Context(), promtool, "check", "rules", file).CombinedOutput()
		return string(out), err
	}
	if out, err := check(exprs...); err != nil || !strings.Contains(out, fmt.Sprintf("SUCCESS: %d rules found", len(exprs))) {
		t.Errorf("%v\n%s", err, out)
	}
	if out, err := check(exprs[0] + ")"); err == nil {
		t.Errorf("a mistake was not noticed: %s", out)
	}
}
