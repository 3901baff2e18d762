package modules_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"strings"
	"testing"
)

// TestEveryExportedNameHasAComment checks fields and methods too, because go doc is the manual of
// the libraries.
func TestEveryExportedNameHasAComment(t *testing.T) {
	all := packages(t)
	libraries := libraries(all)
	names, found := 0, make(map[string]bool)
	for _, p := range all {
		if !libraries[p.Module.Path] || !p.isImportable() {
			continue
		}
		found[p.ImportPath] = true
		for _, file := range p.GoFiles {
			files := token.NewFileSet()
			parsed, err := parser.ParseFile(files, filepath.Join(p.Dir, file), nil, parser.ParseComments)
			if err != nil {
				t.Fatal(err)
			}
			for _, n := range exportedNames(parsed) {
				names++
				switch at := files.Position(n.pos); {
				case n.text == "":
					t.Errorf("%s/%s:%d: %s has no comment", p.ImportPath, file, at.Line, n.name)
				case n.begins && !strings.HasPrefix(n.text, n.short()+" "):
					t.Errorf("%s/%s:%d: the comment on %s does not begin with its name", p.ImportPath, file, at.Line, n.name)
				}
			}
		}
	}
	if root := readModFile(t, ".").Module.Path; names < 500 || !found[root] || !found[root+"/gosdk/elicit"] || !found[root+"/probe"] {
		t.Errorf("only %d names were found, in the packages %v", names, found)
	}
}

// named is an exported name with its comment.
type named struct {
	name   string // with the type in front if it is a field or a method
	text   string // the comment
	begins bool   // whether the comment must begin with the name
	pos    token.Pos
}

func (n named) short() string { return n.name[strings.LastIndexByte(n.name, '.')+1:] }

// exportedNames returns the names in a file that the command "go doc" shows, each with its comment.
func exportedNames(file *ast.File) (all []named) {
	add := func(begins bool, owner string, name *ast.Ident, comments ...*ast.CommentGroup) {
		if !name.IsExported() {
			return
		}
		var text string
		for _, comment := range comments {
			text += comment.Text()
		}
		all = append(all, named{owner + name.Name, text, begins, name.Pos()})
	}
	for _, declaration := range file.Decls {
		switch d := declaration.(type) {
		case *ast.FuncDecl:
			owner := receiver(d)
			if ast.IsExported(owner) {
				add(true, owner+".", d.Name, d.Doc)
			} else if owner == "" {
				add(true, "", d.Name, d.Doc)
			}
		case *ast.GenDecl:
			for _, spec := range d.Specs {
				var alone *ast.CommentGroup // the comment on a declaration that has no parentheses
				if !d.Lparen.IsValid() {
					alone = d.Doc
				}
				switch s := spec.(type) {
				case *ast.ValueSpec:
					for _, name := range s.Names {
						add(alone != nil, "", name, alone, s.Doc, s.Comment)
					}
				case *ast.TypeSpec:
					add(true, "", s.Name, alone, s.Doc)
					if s.Name.IsExported() {
						for _, field := range members(s.Type) {
							for _, name := range field.Names {
								add(false, s.Name.Name+".", name, field.Doc, field.Comment)
							}
						}
					}
				}
			}
		}
	}
	return all
}

// members returns the fields of a struct, or the methods of an interface.
func members(t ast.Expr) []*ast.Field {
	switch t := t.(type) {
	case *ast.StructType:
		return t.Fields.List
	case *ast.InterfaceType:
		return t.Methods.List
	}
	return nil
}

// receiver returns the name of the type that a method belongs to, or "" for a function.
func receiver(f *ast.FuncDecl) string {
	if f.Recv == nil {
		return ""
	}
	t := f.Recv.List[0].Type
	for {
		switch inner := t.(type) {
		case *ast.StarExpr:
			t = inner.X
		case *ast.IndexExpr:
			t = inner.X
		case *ast.IndexListExpr:
			t = inner.X
		case *ast.Ident:
			return inner.Name
		default:
			return "?"
		}
	}
}
