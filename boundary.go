package mcpseal

import (
	"crypto/rand"
	"fmt"
	"log/slog"
	"strings"
)

const methodTool, methodResource = "tools/call", "resources/read"

// Boundary decides: it seals what goes to the client and checks what comes
// back. It is safe for concurrent use.
type Boundary struct {
	config         Config
	formats        []acceptedFormat // the first seals
	singleUseTools map[string]bool
	audience       [digestSize]byte
	ownerSalt      [16]byte
}

// acceptedFormat is a format and what policy knows of it.
type acceptedFormat struct {
	Format
	prefix  string
	carries Claim
	waives  Claim
}

// missing returns the claims that the format's tokens lack.
func (f *acceptedFormat) missing(demanded Claim) Claim {
	return demanded &^ f.carries &^ f.waives
}

// New makes a boundary. An error says what to configure.
func New(config Config) (*Boundary, error) {
	config, err := config.withDefaults()
	if err != nil {
		return nil, err
	}
	b := &Boundary{config: config, audience: audienceDigest(config.Audience)}
	rand.Read(b.ownerSalt[:]) // never fails
	if config.ReplayTools != nil {
		b.singleUseTools = make(map[string]bool, len(config.ReplayTools))
		for _, tool := range config.ReplayTools {
			b.singleUseTools[tool] = true
		}
	}
	sealing := Accepted{config.Format, config.Waive}
	if sealing.Format == nil {
		codec := &ringCodec{keys: config.Keys, purpose: PurposeState, halfUsed: b.warnHalfUsed}
		sealing.Format = &recordFormat{PurposeState.Prefix(), codec}
	}
	if err := b.addFormat(sealing); err != nil {
		return nil, err
	}
	for _, other := range config.AlsoOpen {
		if err := b.addFormat(other); err != nil {
			return nil, err
		}
	}
	if missing := b.formats[0].missing(b.alwaysDemanded()); missing != 0 {
		return nil, fmt.Errorf("mcpseal: tokens of the format %q cannot carry %s; use the native format, "+
			"or do without by naming that in Config.Waive", b.formats[0].prefix, missing)
	}
	if ring, ok := config.Keys.(*Ring); ok && ring.keys.ephemeral {
		b.log(slog.LevelWarn, "mcpseal: the keys are ephemeral: tokens die with this process and no other replica opens them")
	}
	return b, nil
}

// addFormat checks a format. Prefixes must not overlap, so that a token
// belongs to one format at most.
func (b *Boundary) addFormat(a Accepted) error {
	if a.Format == nil {
		return fmt.Errorf("mcpseal: format %d of Config.AlsoOpen is nil", len(b.formats))
	}
	f := acceptedFormat{a.Format, a.Format.Prefix(), a.Format.Carries(), a.Waive}
	if err := checkPrefix(a.Format); err != nil {
		return err
	}
	for _, other := range b.formats {
		if strings.HasPrefix(f.prefix, other.prefix) || strings.HasPrefix(other.prefix, f.prefix) {
			return fmt.Errorf("mcpseal: two formats with the prefix %q: a token would belong to both", f.prefix)
		}
	}
	if idle := f.waives & f.carries; idle != 0 {
		return fmt.Errorf("mcpseal: the format %q carries %s, which cannot be waived", f.prefix, idle)
	}
	if unknown := a.Waive &^ allClaims; unknown != 0 {
		return fmt.Errorf("mcpseal: the waiver for the format %q names an unknown claim", f.prefix)
	}
	if f.waives != 0 {
		b.log(slog.LevelWarn, "mcpseal: claims are waived", slog.String("format", f.prefix), slog.String("claims", f.waives.String()))
	}
	b.formats = append(b.formats, f)
	return nil
}

// formatOf finds the one format that a token can belong to.
func (b *Boundary) formatOf(token string) *acceptedFormat {
	for i := range b.formats {
		if strings.HasPrefix(token, b.formats[i].prefix) {
			return &b.formats[i]
		}
	}
	return nil
}

// alwaysDemanded is what policy demands of every token.
func (b *Boundary) alwaysDemanded() Claim {
	demanded := ClaimRequest | ClaimArguments | ClaimQuestions
	if b.config.Audience != "" {
		demanded |= ClaimAudience
	}
	if b.config.RequirePrincipal {
		demanded |= ClaimPrincipal
	}
	if b.config.MaxFlow != NoLimit || b.config.MaxRounds != maxRound {
		demanded |= ClaimFlow
	}
	if b.config.Replay != nil && len(b.singleUseTools) == 0 {
		demanded |= ClaimSingleUse
	}
	return demanded
}

// demanded is what policy demands of a token for this request.
func (b *Boundary) demanded(binding *Binding) Claim {
	demanded := b.alwaysDemanded()
	if binding.Principal != "" {
		demanded |= ClaimPrincipal
	}
	if b.singleUse(binding) {
		demanded |= ClaimSingleUse
	}
	return demanded
}
