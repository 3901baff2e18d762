package ready_test

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// query has the parts of a PromQL expression that the tests check.
type query struct {
	selectors []selector
	labels    []string // by which results are grouped or matched
}

type selector struct {
	metric   string
	matchers []matcher
}

type matcher struct{ label, operator, value string }

var (
	grouping = regexp.MustCompile(`\b(?:by|on|ignoring|without|group_left|group_right)\s*\(([^)]*)\)`)
	comment  = regexp.MustCompile(`(?m)#.*$`)
	duration = regexp.MustCompile(`\[[^\]]*\]|\boffset\s+\w+`)
	word     = regexp.MustCompile(`([a-zA-Z_:][a-zA-Z0-9_:]*)(\s*\()?(?:\{([^}]*)\})?`)
	matching = regexp.MustCompile(`([a-zA-Z_][a-zA-Z0-9_]*)\s*(=~|!~|!=|=)\s*"([^"]*)"`)
	// operators are the words that are neither functions nor metrics.
	operators = []string{"and", "or", "unless", "bool"}
)

// parse reads an expression. It knows only the syntax of the expressions in the folder deploy. It
// does not check this syntax: promtool does.
func parse(expr string) (q query) {
	expr = comment.ReplaceAllString(expr, "")
	for _, group := range grouping.FindAllStringSubmatch(expr, -1) {
		q.labels = append(q.labels, strings.FieldsFunc(group[1], func(r rune) bool { return r == ',' || r == ' ' })...)
	}
	expr = grouping.ReplaceAllString(expr, "")
	expr = duration.ReplaceAllString(expr, "")
	for _, found := range word.FindAllStringSubmatch(expr, -1) {
		if found[2] != "" || slices.Contains(operators, found[1]) {
			continue
		}
		s := selector{metric: found[1]}
		for _, m := range matching.FindAllStringSubmatch(found[3], -1) {
			s.matchers = append(s.matchers, matcher{m[1], m[2], m[3]})
		}
		q.selectors = append(q.selectors, s)
	}
	return q
}

var pattern = regexp.MustCompile(`[.*+?()\[\]\\]`)

// This method returns what is wrong with a query, such as a metric or a label that m does
// not have.
func (q query) mistakes(m metrics) (wrong []string) {
	known := make(map[string]bool) // labels of the metrics in the query
	for _, s := range q.selectors {
		labels, ok := m[s.metric]
		if !ok {
			wrong = append(wrong, fmt.Sprintf("there is no metric %s", s.metric))
		}
		for label := range labels {
			known[label] = true
		}
		for _, match := range s.matchers {
			values, ok := labels[match.label]
			if !ok {
				wrong = append(wrong, fmt.Sprintf("%s has no label %s", s.metric, match.label))
				continue
			}
			wanted := []string{match.value}
			if strings.HasSuffix(match.operator, "~") {
				wanted = strings.Split(match.value, "|")
			}
			for _, value := range wanted {
				if value != "" && !strings.HasPrefix(value, "$") && !pattern.MatchString(value) && !values[value] {
					wrong = append(wrong, fmt.Sprintf("%s of %s is never %s", match.label, s.metric, value))
				}
			}
		}
	}
	if len(q.selectors) == 0 {
		wrong = append(wrong, "no metric was found")
	}
	for _, label := range q.labels {
		if !known[label] {
			wrong = append(wrong, fmt.Sprintf("no metric here has the label %s", label))
		}
	}
	return wrong
}
