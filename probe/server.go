package probe

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// maxAnswer is the maximum number of bytes that the probe reads of one answer.
const maxAnswer = 16 << 20

// Server is the MCP server that the probe attacks. [HTTP] and [Stdio] return a Server.
// Pass it to [Run], and close it afterwards.
type Server interface {
	// send sends m with the given id and the bearer token of the user, and returns the
	// answer. It never returns nil.
	send(ctx context.Context, m message, id int, bearer string) *reply
	// kind returns "http" or "stdio".
	kind() string
	// name returns the URL or the command.
	name() string
	// Close ends the connection, and the process if the probe started one.
	Close() error
}

// HTTP returns the server at a URL. The probe talks to it over streamable HTTP. The server must
// be on this machine or on one of the allowed hosts. Use HTTP for a server that is already
// running.
func HTTP(address string, allowed ...string) (Server, error) {
	u, err := url.Parse(address)
	if strings.Contains(address, "@") && (err != nil || u.Host == "" || u.User != nil) {
		return nil, errors.New("the URL has a user or a password in it: use a bearer token, so that no report shows them")
	}
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return nil, fmt.Errorf("%q is not a URL such as http://127.0.0.1:8080/mcp", address)
	}
	if host := u.Hostname(); !local(host) {
		ok := false
		for _, a := range allowed {
			ok = ok || strings.EqualFold(a, host)
		}
		if !ok {
			return nil, fmt.Errorf("%s %w", host, ErrRemote)
		}
	}
	transport := &http.Transport{DisableCompression: true, MaxIdleConnsPerHost: 16, IdleConnTimeout: 30 * time.Second}
	return &web{address: u.String(), client: &http.Client{
		Transport:     transport,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}, nil
}

// ErrRemote is the error of [HTTP] for a host that is neither this machine nor allowed.
// Use errors.Is to tell it from the other errors of HTTP.
var ErrRemote = errors.New("is not this machine; if you may attack it, allow that host by its name")

// local reports whether the host is this machine. It does not resolve names, and returns false
// for every name but localhost, because other names may lead anywhere.
func local(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

type web struct {
	address string
	client  *http.Client
}

func (w *web) kind() string { return "http" }
func (w *web) name() string { return w.address }

func (w *web) Close() error {
	w.client.CloseIdleConnections()
	return nil
}

func (w *web) send(ctx context.Context, m message, id int, bearer string) *reply {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, w.address, strings.NewReader(m.text(id)))
	if err != nil {
		return &reply{lost: err}
	}
	request.Header = m.headers()
	if bearer != "" && m.userHeader != "" {
		request.Header.Set(m.userHeader, bearer)
	} else if bearer != "" {
		request.Header.Set("Authorization", "Bearer "+bearer)
	}
	response, err := w.client.Do(request)
	if err != nil {
		return &reply{lost: noAnswer(ctx, err)}
	}
	defer response.Body.Close()
	r := &reply{status: response.StatusCode}
	if r.status >= 300 && r.status < 400 {
		r.lost = redirected(response)
		return r
	}
	body := io.LimitReader(response.Body, maxAnswer)
	media, _, _ := mime.ParseMediaType(response.Header.Get("Content-Type"))
	if media == "text/event-stream" {
		r.raw, err = answerEvent(body)
	} else {
		r.raw, err = io.ReadAll(body)
	}
	if err != nil {
		r.lost = noAnswer(ctx, err)
		return r
	}
	r.read(r.raw)
	return r
}

// redirected returns an error that says to which URL the server redirects the client. The probe
// does not follow redirects, because they may lead to a server that must not be attacked.
func redirected(response *http.Response) error {
	to, err := response.Location()
	if err != nil {
		return fmt.Errorf("HTTP %d", response.StatusCode)
	}
	to.User = nil
	return fmt.Errorf("HTTP %d to %s: give that URL", response.StatusCode, clip(to.String(), 240))
}

func noAnswer(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return errors.New("there was no answer in time")
	}
	var op *url.Error
	if errors.As(err, &op) {
		err = op.Err // without the URL, which the report shows anyway
	}
	return fmt.Errorf("the connection failed: %w", err)
}

// answerEvent returns the data of the first event that is an answer. Events with notifications
// may come before it.
func answerEvent(body io.Reader) ([]byte, error) {
	lines := bufio.NewScanner(body) // it takes LF and CR LF as the end of a line
	lines.Buffer(nil, maxAnswer)
	var data []byte
	for first := true; lines.Scan(); first = false {
		line := lines.Bytes()
		if first {
			line = bytes.TrimPrefix(line, []byte("\ufeff"))
		}
		if value, ok := bytes.CutPrefix(line, []byte("data:")); ok {
			if data != nil {
				data = append(data, '\n')
			}
			data = append(data, bytes.TrimPrefix(value, []byte(" "))...)
		}
		if len(line) > 0 {
			continue
		}
		if isAnswer(data) {
			return data, nil
		}
		data = nil
	}
	if isAnswer(data) {
		return data, nil
	}
	return nil, cmp.Or(lines.Err(), errors.New("the stream ended without an answer"))
}

// isAnswer reports whether a message is an answer, that is, has a result or an error.
func isAnswer(text []byte) bool {
	var r reply
	if len(text) == 0 {
		return false
	}
	r.read(text)
	return r.lost == nil
}
