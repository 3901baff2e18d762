package main

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// errDeclined means that the user did not say yes.
var errDeclined = errors.New("declined")

// asking is an error that carries a question from the function confirm up to the handler. Every
// function in between returns it at once, and runs again when the client sends the answer.
type asking struct{ key, message string }

func (*asking) Error() string { return "the user was not asked yet" }

// confirm asks the user a question, and returns nil if the user said yes. Each question of a tool
// needs a key of its own.
func (c *call) confirm(key, message string) error {
	if slices.Contains(c.state.Agreed, key) {
		return nil
	}
	answer, ok := c.answers[key].(*mcp.ElicitResult)
	if !ok {
		return &asking{key, message}
	}
	if answer.Action != "accept" || answer.Content["ok"] != true {
		return errDeclined
	}
	c.state.Agreed = append(c.state.Agreed, key)
	return nil
}

// handler returns the handler of a tool. The function act runs from its beginning in every round.
func (s *service) handler(token string, act func(*call, string) (string, error)) mcp.ToolHandler {
	return func(ctx context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		var in struct{ Path string }
		if err := json.Unmarshal(req.Params.Arguments, &in); err != nil || !fs.ValidPath(in.Path) || in.Path == "." {
			return say("There is no such path.", true), nil
		}
		c, err := s.open(ctx, req)
		if err != nil {
			return nil, err
		}
		if c.state.Folder == "" { // looked up in the first round, and kept in the state
			c.state.Folder = folderOf(token)
		}
		text, err := act(c, path.Join(c.state.Folder, in.Path))
		asks := new(asking)
		switch {
		case errors.As(err, &asks):
			return s.seal(ctx, req, c, mcp.InputRequestMap{asks.key: confirmation(asks.message)})
		case errors.Is(err, errDeclined):
			return say("Nothing was changed.", false), nil
		case errors.Is(err, fs.ErrNotExist):
			return say("There is no such file.", true), nil
		case err != nil:
			return nil, err
		}
		return say(text, false), nil
	}
}

func (s *service) read(_ *call, name string) (string, error) {
	text, err := s.files.ReadFile(name)
	return string(text), err
}

func (s *service) delete(c *call, name string) (string, error) {
	if err := s.mayDelete(c, name); err != nil {
		return "", err
	}
	return "Deleted.", s.files.RemoveAll(name)
}

// mayDelete asks the user whether to delete a file. For a folder, it asks about the files in it too.
func (s *service) mayDelete(c *call, name string) error {
	info, err := s.files.Stat(name)
	if err != nil {
		return err
	}
	if err := c.confirm("confirm", "Delete "+name+"?"); err != nil || !info.IsDir() {
		return err
	}
	entries, err := fs.ReadDir(s.files.FS(), name)
	if err != nil || len(entries) == 0 {
		return err
	}
	var names []string
	for _, entry := range entries {
		names = append(names, entry.Name())
	}
	return c.confirm("below", "Delete also "+strings.Join(names, ", ")+"?")
}

func (s *service) archive(c *call, name string) (string, error) {
	if _, err := s.files.Stat(name); err != nil {
		return "", err
	}
	if err := c.confirm("confirm", "Archive "+name+"?"); err != nil {
		return "", err
	}
	return "Archived.", s.files.Rename(name, name+".archived")
}

func confirmation(message string) *mcp.ElicitParams {
	return &mcp.ElicitParams{Message: message, RequestedSchema: map[string]any{
		"type": "object", "properties": map[string]any{"ok": map[string]any{"type": "boolean"}}, "required": []string{"ok"},
	}}
}

func say(text string, isError bool) *mcp.CallToolResult {
	return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: text}}, IsError: isError}
}
