package strictjson_test

import (
	"encoding/json"
	"testing"

	"github.com/tripseal/tripseal/internal/strictjson"
)

func TestAQuotedTextIsReadAsItself(t *testing.T) {
	half := string(strictjson.AppendRune(nil, 0xd800))
	for text, want := range map[string]string{
		"": `""`, "plain": `"plain"`, `"`: `"\""`, `\`: `"\\"`, "\x00\n\x1f": `"\u0000\u000a\u001f"`, "é€😀": `"é€😀"`,
		"\u2028<\x7f": "\"\u2028<\x7f\"", half: `"\ud800"`, "a" + half + "b": `"a\ud800b"`, "\ud7ff\ue000": "\"\ud7ff\ue000\"",
		string(strictjson.AppendRune(nil, 0xdfff)): `"\udfff"`,
	} {
		quoted := strictjson.Quote(text)
		if quoted != want || !json.Valid([]byte(quoted)) {
			t.Errorf("%q became %s, not %s", text, quoted, want)
		}
		members := strictjson.ReadMembers(`{"a":` + quoted + `}`)
		if member, ok := members.Next(); !ok || member.Text != text {
			t.Errorf("%s is read as %q, not %q", quoted, member.Text, text)
		}
	}
}
