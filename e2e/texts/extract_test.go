package texts

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// A sink is a place whose text reaches a client or a log: the message of a log record, the
// message of an error for the client, or the cause of a rejection. The extractor begins at the
// sinks that are named below and goes backwards: from a parameter to the arguments of all calls,
// from a variable to what is assigned to it, from the result of a function to its return
// statements. It knows no types: it assumes that a call can mean every function with the right
// name. So it may find a text that nobody shows, which does no harm.

// unserved are the folders whose code runs in no server and no proxy.
var unserved = map[string]bool{
	"bench": true, "e2e": true, "examples": true, "interop": true, "tools": true, "scripts": true, "docs": true, "testdata": true,
	"probe": true, "sealtest": true, "gosdktest": true, "mcpgotest": true, "certstest": true, "identitytest": true, "release": true, "hostile": true, "revision": true,
}

// The keys are the methods of a logger. The value is the index of the argument that is the message.
var logged = map[string]int{
	"Debug": 0, "Info": 0, "Warn": 0, "Error": 0, "DebugContext": 1, "InfoContext": 1, "WarnContext": 1, "ErrorContext": 1, "Log": 2, "LogAttrs": 2,
}

// The values of these attributes explain a log record.
var explains = map[string]bool{"cause": true, "why": true}

// These functions make their result from one argument. A key is the name of a function, with its
// package. The value in the map is the index of the argument.
var textArgument = map[string]int{
	"errors.New": 0, "fmt.Errorf": 0, "fmt.Sprintf": 0, "strings.TrimPrefix": 0, "plain.Error": 0, "tripseal.PlainError": 0,
	"callback.Explain": 0, "callback.Failed": 0,
}

// The results of these functions reach a client or a log, but the extractor does not see how, for
// example because a function is called through an interface. A key is the folder and the name of a
// function. The value is the index of the result that is shown: a text, or an error with a text.
var shown = map[string]int{
	"cmd/tripseal/internal/identity Caller":  1,
	"cmd/tripseal/internal/identity Ready":   0,
	"cmd/tripseal/internal/httpcarrier Look": 0,
	"cmd/tripseal keysReady":                 0,
	"cmd/tripseal/internal/identity keys":    1,
	"gosdk/elicit Error":                     0,
	"gosdk/elicit unread":                    0,
	"cursor kind":                            0,
	"internal/keyfile Error":                 0,
	"internal/keyfile Exposed":               0,
	"internal/keyfile Open":                  1,
	"internal/keyfile ReadText":              1,
	"internal/keyfile parseSecret":           1,
	". Error":                                0,
}

// These functions get a text about arguments that are not proper JSON. A key is the folder and the
// name of a function. The value is the index of the parameter that is the text.
var problems = map[string]int{"internal/jsonorder fail": 0, "internal/jsonorder refuse": 1, "internal/argdigest Whole": 0}

// Some sources have a log record or an answer as one JSON text. inJSON finds the message in it.
var inJSON = regexp.MustCompile(`"(?:message|msg)":"([^"]+)"`)

// code has the declarations, the calls and the texts of the sources.
type code struct {
	functions map[string][]*function // by folder and name
	values    map[string]ast.Expr    // constants and variables of packages, by folder and name
	calls     []site
	fields    map[string][]site // what is assigned to fields, by folder and name
	texts     map[string]bool
	every     map[string]bool // all texts of the sources, whether they are shown or not
	done      map[any]bool
}

type function struct {
	folder  string
	params  []string
	results []string
	of      *ast.FuncType
	body    *ast.BlockStmt
	imports map[string]string
}

// site is an expression, and the place where it is.
type site struct {
	expr   ast.Expr
	in     *function // the function that contains expr; nil if expr is outside of functions
	folder string
}

// extract reads the repository at root. It returns every text that can reach a client or a log,
// and all texts of the sources.
func extract(t *testing.T, root string) (texts, every map[string]bool) {
	c := &code{
		functions: make(map[string][]*function), values: make(map[string]ast.Expr), fields: make(map[string][]site),
		texts: make(map[string]bool), every: make(map[string]bool), done: make(map[any]bool),
	}
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && (unserved[entry.Name()] || len(entry.Name()) > 2 && entry.Name()[0] == '.'):
			return filepath.SkipDir
		case entry.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go"):
			return nil
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
		if err != nil {
			return err
		}
		folder, err := filepath.Rel(root, filepath.Dir(path))
		c.add(filepath.ToSlash(folder), file)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, call := range c.calls {
		c.start(call)
	}
	for name, result := range shown {
		if c.functions[name] == nil {
			t.Errorf("there is no function %s", name)
		}
		for _, f := range c.functions[name] {
			c.returned(f, result)
		}
	}
	c.trace(c.values["adapter StartOver"], &function{folder: "adapter"})
	for name, param := range problems {
		if c.functions[name] == nil {
			t.Errorf("there is no function %s", name)
		}
		for _, f := range c.functions[name] {
			c.arguments(f, param)
		}
	}
	return c.texts, c.every
}

// add records the declarations and the calls of a file.
func (c *code) add(folder string, file *ast.File) {
	const module = "github.com/tripseal/tripseal"
	imports := make(map[string]string)
	for _, spec := range file.Imports {
		path, _ := strconv.Unquote(spec.Path.Value)
		if own, ok := strings.CutPrefix(path, module); ok {
			own = strings.TrimPrefix(own, "/")
			if own == "" {
				imports["tripseal"] = "."
			} else {
				imports[own[strings.LastIndex(own, "/")+1:]] = own
			}
		}
	}
	none := &function{folder: folder, imports: imports}
	for _, decl := range file.Decls {
		switch d := decl.(type) {
		case *ast.GenDecl:
			for _, spec := range d.Specs {
				if v, ok := spec.(*ast.ValueSpec); ok {
					for i, name := range v.Names {
						if i < len(v.Values) {
							c.values[folder+" "+name.Name] = v.Values[i]
						}
					}
					if mentions(v, "PlainError") { // a table of causes
						for _, value := range v.Values {
							c.literals(value)
						}
					}
				}
			}
			c.walk(d, none)
		case *ast.FuncDecl:
			if d.Body == nil {
				continue
			}
			f := &function{folder, names(d.Type.Params), names(d.Type.Results), d.Type, d.Body, imports}
			key := folder + " " + d.Name.Name
			c.functions[key] = append(c.functions[key], f)
			c.walk(d.Body, f)
		}
	}
}

// walk records the calls and the assigned fields under a node.
func (c *code) walk(node ast.Node, f *function) {
	ast.Inspect(node, func(n ast.Node) bool {
		if e, ok := n.(ast.Expr); ok {
			if text, ok := literal(e); ok {
				c.every[text] = true
			}
		}
		switch n := n.(type) {
		case *ast.BasicLit:
			if text, ok := literal(n); ok {
				for _, found := range inJSON.FindAllStringSubmatch(text, -1) {
					c.texts[found[1]] = true
				}
			}
		case *ast.CallExpr, *ast.CompositeLit:
			c.calls = append(c.calls, site{n.(ast.Expr), f, f.folder})
		case *ast.KeyValueExpr:
			if name, ok := n.Key.(*ast.Ident); ok {
				c.fields[f.folder+" "+name.Name] = append(c.fields[f.folder+" "+name.Name], site{n.Value, f, f.folder})
			}
		case *ast.AssignStmt:
			for i, left := range n.Lhs {
				if field, ok := left.(*ast.SelectorExpr); ok && len(n.Lhs) == len(n.Rhs) {
					key := f.folder + " " + field.Sel.Name
					c.fields[key] = append(c.fields[key], site{n.Rhs[i], f, f.folder})
				}
			}
		}
		return true
	})
}

// start looks at a call or a composite literal. If this is a sink, start finds its texts.
func (c *code) start(s site) {
	if lit, ok := s.expr.(*ast.CompositeLit); ok {
		if name := lastName(lit.Type); name == "WireError" || qualified(lit.Type) == "jsonrpc.Error" {
			for i, element := range lit.Elts {
				if pair, ok := element.(*ast.KeyValueExpr); ok && isName(pair.Key, "Message") {
					c.trace(pair.Value, s.in)
				} else if !ok && i == 1 {
					c.trace(element, s.in)
				}
			}
		}
		return
	}
	call := s.expr.(*ast.CallExpr)
	name := qualified(call.Fun)
	if at, ok := logged[lastName(call.Fun)]; ok && isMethod(call.Fun) && at < len(call.Args) && name != "callback.Log" && name != "http.Error" {
		c.trace(call.Args[at], s.in)
	}
	switch {
	case name == "http.Error":
		c.trace(call.Args[1], s.in)
	case name == "callback.Log":
		c.trace(call.Args[3], s.in)
	case name == "callback.Explain" || name == "plain.Error" || name == "tripseal.PlainError" || isName(call.Fun, "plainError"):
		c.trace(call.Args[0], s.in)
	case name == "fmt.Fprintf" && lastName(call.Args[0]) == "log": // the log of the proxy for a server that speaks stdio
		for _, arg := range call.Args[1:] {
			c.trace(arg, s.in)
		}
	}
	for i, arg := range call.Args { // in both "cause", X and slog.String("cause", X), X explains the record
		if text, ok := literal(arg); ok && explains[text] && i+1 < len(call.Args) {
			c.trace(call.Args[i+1], s.in)
		}
	}
}

// trace finds the texts that can be the value of an expression. The expression is in the function f.
func (c *code) trace(expr ast.Expr, f *function) {
	if text, ok := literal(expr); ok {
		c.texts[text] = true
		return
	}
	if c.done[expr] {
		return
	}
	c.done[expr] = true
	switch e := expr.(type) {
	case *ast.ParenExpr:
		c.trace(e.X, f)
	case *ast.UnaryExpr:
		c.trace(e.X, f)
	case *ast.BinaryExpr:
		c.sum(e, f)
	case *ast.Ident:
		c.name(e.Name, f)
	case *ast.IndexExpr: // a value of a table
		if table, ok := e.X.(*ast.Ident); ok {
			if value, ok := c.values[f.folder+" "+table.Name].(*ast.CompositeLit); ok {
				c.literals(value)
			}
		}
	case *ast.SelectorExpr:
		if of, ok := e.X.(*ast.Ident); ok && f.imports[of.Name] != "" {
			folder := f.imports[of.Name]
			if value := c.values[folder+" "+e.Sel.Name]; value != nil {
				c.trace(value, &function{folder: folder})
			}
			return
		}
		for _, s := range c.fields[f.folder+" "+e.Sel.Name] {
			c.trace(s.expr, s.in)
		}
	case *ast.CompositeLit: // for example, an error that is a struct
		if qualified(e.Type) == "cobra.Command" {
			return // only users of the command line see the texts of a command
		}
		for _, element := range e.Elts {
			if pair, ok := element.(*ast.KeyValueExpr); ok {
				element = pair.Value
			}
			c.trace(element, f)
		}
	case *ast.CallExpr:
		c.called(e, 0, f)
	}
}

// sum finds the texts of a concatenation. Adjacent literals and constants make one text. Every
// other part is traced.
func (c *code) sum(e *ast.BinaryExpr, f *function) {
	var parts []ast.Expr
	var flatten func(ast.Expr)
	flatten = func(x ast.Expr) {
		if b, ok := x.(*ast.BinaryExpr); ok {
			flatten(b.X)
			flatten(b.Y)
			return
		}
		parts = append(parts, x)
	}
	flatten(e)
	var text string
	for _, part := range parts {
		if more, ok := literal(part); ok {
			text += more
			continue
		}
		if named, ok := part.(*ast.Ident); ok { // a constant is a part of the text
			if more, ok := literal(c.values[f.folder+" "+named.Name]); ok {
				text += more
				continue
			}
		}
		c.texts[text], text = true, ""
		c.trace(part, f)
	}
	c.texts[text] = true
}

// This method finds the texts of a variable, a parameter or a constant, given by its name.
func (c *code) name(name string, f *function) {
	for i, param := range f.params {
		if param == name {
			c.arguments(f, i)
			return
		}
	}
	if f.body != nil {
		c.assigned(name, f)
	}
	if value := c.values[f.folder+" "+name]; value != nil {
		c.trace(value, &function{folder: f.folder, imports: f.imports})
	}
}

// This method finds the texts that f assigns to the variable with this name.
func (c *code) assigned(name string, f *function) {
	ast.Inspect(f.body, func(n ast.Node) bool {
		assign, ok := n.(*ast.AssignStmt)
		if !ok {
			return true
		}
		for i, left := range assign.Lhs {
			if !isName(left, name) {
				continue
			}
			if len(assign.Rhs) == len(assign.Lhs) {
				c.trace(assign.Rhs[i], f)
			} else if call, ok := assign.Rhs[0].(*ast.CallExpr); ok {
				c.called(call, i, f)
			}
		}
		return true
	})
}

// This method finds the texts of one argument in all calls of f. The index says which argument.
func (c *code) arguments(f *function, index int) {
	type parameter struct {
		f     *function
		index int
	}
	if c.done[parameter{f, index}] {
		return
	}
	c.done[parameter{f, index}] = true
	for _, s := range c.calls {
		call, ok := s.expr.(*ast.CallExpr)
		if !ok || index >= len(call.Args) {
			continue
		}
		for _, callee := range c.callees(call, s.in) {
			if callee == f {
				c.trace(call.Args[index], s.in)
			}
		}
	}
}

// This method finds the texts of one result of a call. The index says which result.
func (c *code) called(call *ast.CallExpr, index int, f *function) {
	name := qualified(call.Fun)
	if at, ok := textArgument[name]; ok {
		c.trace(call.Args[at], f)
		if format, _ := literal(call.Args[at]); strings.Contains(format, "%w") {
			for _, arg := range call.Args[at+1:] {
				c.trace(arg, f)
			}
		}
		return
	}
	if sel, ok := call.Fun.(*ast.SelectorExpr); ok && sel.Sel.Name == "Error" && len(call.Args) == 0 {
		c.trace(sel.X, f)
		return
	}
	if isName(call.Fun, "string") || isName(call.Fun, "append") || name == "cmp.Or" {
		for _, arg := range call.Args {
			c.trace(arg, f)
		}
		return
	}
	for _, callee := range c.callees(call, f) {
		c.returned(callee, index)
	}
}

// This method finds the texts of one result of f. The index says which result.
func (c *code) returned(f *function, index int) {
	type result struct {
		f     *function
		index int
	}
	if c.done[result{f, index}] {
		return
	}
	c.done[result{f, index}] = true
	if index < len(f.results) && f.results[index] != "" {
		c.assigned(f.results[index], f)
	}
	ast.Inspect(f.body, func(n ast.Node) bool {
		ret, ok := n.(*ast.ReturnStmt)
		if !ok {
			return true
		}
		if index < len(ret.Results) && (len(ret.Results) > 1 || index == 0) {
			c.trace(ret.Results[index], f)
		} else if len(ret.Results) == 1 {
			if call, ok := ret.Results[0].(*ast.CallExpr); ok {
				c.called(call, index, f)
			}
		}
		return true
	})
}

// callees returns the functions that a call may mean.
func (c *code) callees(call *ast.CallExpr, f *function) []*function {
	fun := call.Fun
	if generic, ok := fun.(*ast.IndexExpr); ok {
		fun = generic.X
	}
	folder := f.folder
	if sel, ok := fun.(*ast.SelectorExpr); ok {
		if of, ok := sel.X.(*ast.Ident); ok && f.imports[of.Name] != "" {
			folder = f.imports[of.Name]
		}
	}
	return c.functions[folder+" "+lastName(fun)]
}

// This method records every text under a node as a text that is shown.
func (c *code) literals(node ast.Node) {
	ast.Inspect(node, func(n ast.Node) bool {
		if e, ok := n.(ast.Expr); ok {
			if text, ok := literal(e); ok {
				c.texts[text] = true
				return false
			}
		}
		return true
	})
}

// literal returns the text of an expression that has only literals in it.
func literal(expr ast.Expr) (string, bool) {
	switch e := expr.(type) {
	case *ast.BasicLit:
		text, err := strconv.Unquote(e.Value)
		return text, err == nil && e.Kind == token.STRING
	case *ast.BinaryExpr:
		left, ok := literal(e.X)
		right, also := literal(e.Y)
		return left + right, ok && also && e.Op == token.ADD
	}
	return "", false
}

func names(list *ast.FieldList) (all []string) {
	if list == nil {
		return nil
	}
	for _, field := range list.List {
		if len(field.Names) == 0 {
			all = append(all, "")
		}
		for _, name := range field.Names {
			all = append(all, name.Name)
		}
	}
	return all
}

func lastName(expr ast.Expr) string {
	switch e := expr.(type) {
	case *ast.Ident:
		return e.Name
	case *ast.SelectorExpr:
		return e.Sel.Name
	}
	return ""
}

// qualified returns the text of an expression such as package.Name. For any other expression it
// returns "".
func qualified(expr ast.Expr) string {
	if sel, ok := expr.(*ast.SelectorExpr); ok {
		if of, ok := sel.X.(*ast.Ident); ok {
			return of.Name + "." + sel.Sel.Name
		}
	}
	return ""
}

func isMethod(expr ast.Expr) bool {
	_, ok := expr.(*ast.SelectorExpr)
	return ok
}

func isName(expr ast.Expr, name string) bool {
	id, ok := expr.(*ast.Ident)
	return ok && id.Name == name
}

func mentions(node ast.Node, name string) (found bool) {
	ast.Inspect(node, func(n ast.Node) bool {
		id, ok := n.(*ast.Ident)
		found = found || ok && id.Name == name
		return !found
	})
	return found
}
