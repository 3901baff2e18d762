package compat

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"strings"

	"github.com/tripseal/tripseal"
	"github.com/tripseal/tripseal/internal/b64u"
	"github.com/tripseal/tripseal/internal/mac"
	"github.com/tripseal/tripseal/internal/strictjson"
)

const (
	mcpdSignedPrefix    = "v1."
	mcpdEncryptedPrefix = "v1e."
	mcpdMACInfo         = "mcp.requestState bind-hmac key"
	mcpdAESInfo         = "mcp.requestState aes-256-gcm key"
)

// McpDBinding says what tokens of mcp.d are bound to. Choose the setting of your mcp.d
// servers.
type McpDBinding int

const (
	BindSubject        McpDBinding = iota // tokens are bound to the user; a token that was issued without a user is only for callers without a user
	BindSubjectAndTool                    // tokens are bound to the user and to the name of the tool or prompt
	BindNone                              // tokens are bound to nothing
)

// McpDOptions holds the settings of your mcp.d servers, except the secret. Copy the settings
// from those servers.
type McpDOptions struct {
	// Bind is what tokens are bound to. Zero is BindSubject, the default of mcp.d.
	Bind McpDBinding
	// Encrypted is true if tokens are encrypted. If it is false, as by default in mcp.d,
	// tokens are only signed, and a client can read the state.
	Encrypted bool
	// Logger gets a warning if the secret is empty. Nil means slog.Default().
	Logger *slog.Logger
}

// McpD returns the format of mcp.d as of its commit 7e2cbff, signed or encrypted; other
// versions of mcp.d write different tokens. If the secret is empty, a random one is used, as
// in mcp.d. A random secret is lost when this process ends, and the log says so. Use this
// format while a fleet moves from mcp.d to Go.
//
// The format carries [tripseal.ClaimUser], unless Bind is BindNone, and no other claim. With
// BindSubjectAndTool, tokens are also bound to a name. But a tool and a prompt may have the
// same name, so this does not prove which request a token is for. Times are whole seconds,
// so a token may live up to a second shorter than Config.TTL says.
//
// In signed mode one key signs both payloads and user names, and the token shows both
// signatures. So a user who can choose a name that looks like a payload gets a signature for
// that payload. This package therefore refuses names that begin with a brace, or with white
// space and a brace. In both modes, it also refuses names with a zero byte: such a name can
// look like another user's name followed by another tool's name. The servers of mcp.d accept
// all these names. Prefer the encrypted mode, and move to the native format as soon as you can.
func McpD(secret []byte, options McpDOptions) (tripseal.Format, error) {
	if options.Bind < BindSubject || options.Bind > BindNone {
		return nil, errors.New("compat: McpDOptions.Bind is none of BindSubject, BindSubjectAndTool and BindNone")
	}
	if len(secret) == 0 {
		secret = make([]byte, minSecret)
		rand.Read(secret) // never fails
		cmp.Or(options.Logger, slog.Default()).Warn("compat: mcp.d tokens have no secret, so a random one is used: " +
			"tokens die with this process and no other server opens them")
	}
	if err := checkSecret("the mcp.d format", secret); err != nil {
		return nil, err
	}
	return newMcpD(secret, options)
}

func newMcpD(secret []byte, options McpDOptions) (*mcpdFormat, error) {
	macSecret, err := derive(secret, mcpdMACInfo)
	if err != nil {
		return nil, err
	}
	aesSecret, err := derive(secret, mcpdAESInfo)
	if err != nil {
		return nil, err
	}
	sealer, err := newSealer(aesSecret)
	if err != nil {
		return nil, err
	}
	mode := "signed"
	if options.Encrypted {
		mode = "encrypted"
	}
	return &mcpdFormat{redacted(fmt.Sprintf("McpD(%s)", mode)), options, mac.NewKey(macSecret), sealer}, nil
}

type mcpdFormat struct {
	redacted
	options McpDOptions
	mac     mac.Key
	sealer  *sealer
}

func (f *mcpdFormat) Prefix() string {
	if f.options.Encrypted {
		return mcpdEncryptedPrefix
	}
	return mcpdSignedPrefix
}

func (f *mcpdFormat) Carries() tripseal.ClaimSet {
	if f.options.Bind == BindNone {
		return 0
	}
	return tripseal.ClaimUser
}

const (
	errZeroByte = tripseal.PlainError("the name of the user, the tool or the prompt has a zero byte, " +
		"with which an mcp.d token could pass for another user's")
	errLooksSigned = tripseal.PlainError("the user's name begins like a payload, so a signed token of this user could pass for another token: " +
		"use the encrypted mode or the native format")
)

// Digest returns nil, because tokens of mcp.d are not bound to the arguments.
func (f *mcpdFormat) Digest(*tripseal.Binding) ([]byte, error) { return nil, nil }

// bindTag returns the claim that binds a token as f.options.Bind says: to the user, to the
// user plus the name of the tool or prompt, or to nothing.
func (f *mcpdFormat) bindTag(b *tripseal.Binding) (string, error) {
	subject, name := b.User, b.Target
	if b.Method == methodReadResource {
		name = "" // mcp.d binds params.name, which a resource does not have
	}
	material := ""
	switch f.options.Bind {
	case BindSubject:
		name = ""
		material = subject
	case BindSubjectAndTool:
		material = subject + "\x00" + name
	case BindNone:
		subject, name = "", ""
	}
	if strings.IndexByte(subject, 0) >= 0 || strings.IndexByte(name, 0) >= 0 {
		return "", errZeroByte
	}
	if !f.options.Encrypted && strings.HasPrefix(strings.TrimLeft(subject, " \t\r\n"), "{") {
		return "", errLooksSigned
	}
	sum := f.mac.Sum(material)
	return hex.EncodeToString(sum[:]), nil
}

func (f *mcpdFormat) Seal(_ context.Context, b *tripseal.Binding, c *tripseal.Claims) (string, error) {
	tag, err := f.bindTag(b)
	if err != nil {
		return "", err
	}
	exp, err := lastSecond(c)
	if err != nil {
		return "", err
	}
	payload, err := mcpdEnvelope(c.State, exp, tag)
	if err != nil {
		return "", err
	}
	if f.options.Encrypted {
		return f.sealer.seal(mcpdEncryptedPrefix, nil, payload, []byte(tag)), nil
	}
	return f.sign(payload), nil
}

var mcpdStrings = strictjson.StringStyle{Short: "\n\r\t", Upper: true}

// mcpdEnvelope returns the JSON object of a token, byte for byte as mcp.d writes it.
func mcpdEnvelope(state string, exp int64, tag string) ([]byte, error) {
	buf := append(make([]byte, 0, 128+len(state)+len(state)/8), `{"s":`...)
	buf, ok := strictjson.AppendString(buf, state, &mcpdStrings)
	if !ok {
		return nil, errState
	}
	buf = append(append(append(buf, `,"b":"`...), tag...), `","exp":`...)
	return append(strconv.AppendInt(buf, exp, 10), '}'), nil
}

func (f *mcpdFormat) sign(payload []byte) string {
	text := b64u.Append([]byte(mcpdSignedPrefix), payload)
	sum := f.mac.Sum(string(payload))
	return string(b64u.Append(append(text, '.'), sum[:]))
}

func (f *mcpdFormat) Open(_ context.Context, b *tripseal.Binding, token string) (tripseal.Claims, error) {
	tag, err := f.bindTag(b)
	if err != nil {
		return tripseal.Claims{}, tripseal.ReasonUser
	}
	payload, err := f.open(token, tag)
	if err != nil {
		return tripseal.Claims{}, err
	}
	var e envelope
	if !e.read(payload) {
		return tripseal.Claims{}, tripseal.ReasonMalformed
	}
	state, hasState := e.state.utf8()
	exp, hasExp := e.expires.integer()
	if !hasState || !hasExp {
		return tripseal.Claims{}, tripseal.ReasonMalformed
	}
	if !e.bind.equalsSecret(tag) {
		return tripseal.Claims{}, tripseal.ReasonUser
	}
	return tripseal.Claims{Expires: throughSecond(exp), State: state, HasState: true}, nil
}

// open returns the payload of a token, or an error if the token is not genuine.
func (f *mcpdFormat) open(token, tag string) (string, error) {
	text, ok := strings.CutPrefix(token, f.Prefix())
	if !ok {
		return "", tripseal.ReasonMalformed
	}
	if !f.options.Encrypted {
		return f.verify(text)
	}
	s := scratches.Get().(*scratch)
	defer s.release()
	if !s.decode(text, 0) {
		return "", tripseal.ReasonMalformed
	}
	return f.sealer.open(s, s.sealed, []byte(tag))
}

func (f *mcpdFormat) verify(text string) (string, error) {
	body, tag, ok := strings.Cut(text, ".")
	if !ok {
		return "", tripseal.ReasonMalformed
	}
	payload, err := b64u.Decode(nil, body)
	if err != nil {
		return "", tripseal.ReasonMalformed
	}
	sum, err := b64u.Decode(make([]byte, 0, 2*mac.Size), tag)
	if err != nil {
		return "", tripseal.ReasonMalformed
	}
	if !f.mac.Verify(sum, string(payload)) {
		return "", tripseal.ReasonForged
	}
	return string(payload), nil
}
