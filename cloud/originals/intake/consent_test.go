package intake_test

import (
	"bufio"
	"crypto/tls"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"kennel/cloud/identity/consent"
	"kennel/infra/api/files"
)

// within sends a request whose body comes after something has happened, which the server has begun to read by then.
func (r *rig) within(t testing.TB, request string, happens func()) (*http.Response, string) {
	t.Helper()
	conn, err := tls.Dial("tcp", r.srv.Listener.Addr().String(), r.srv.Client().Transport.(*http.Transport).TLSClientConfig)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	head, body, _ := strings.Cut(strings.Replace(request, "Accept: */*", "Expect: 100-continue", 1), "\r\n\r\n")
	if _, err := io.WriteString(conn, head+"\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	in := bufio.NewReader(conn)
	if line, err := in.ReadString('\n'); err != nil || !strings.Contains(line, "100") {
		t.Fatalf("the server asks for no body: %q, %v", line, err)
	}
	if _, err := in.ReadString('\n'); err != nil {
		t.Fatal(err)
	}
	happens()
	if _, err := io.WriteString(conn, body); err != nil {
		t.Fatal(err)
	}
	resp, err := http.ReadResponse(in, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp, string(b)
}

// TestStraddling: VEC-FLE-06, VEC-LOG-08, VEC-CRS-05: a body within which the robot gets another owner, or its owner says no, is refused for good on each wire, on both
// listeners; one within which the owner changed other settings may come again. Nothing of it is stored.
func TestStraddling(t *testing.T) {
	r := newRig(t)
	dump := strings.ReplaceAll(crashForm(dumpText), "vic-engine-1.log", "x.log")
	wires := map[string]string{
		"a log":                   putLog(files.Log(logName), "x"),
		"a log of an original":    putLog("/logs/"+logName, "x"),
		"a crash":                 postCrash(files.Crash, dump),
		"a crash of an original":  postCrash(crashPath, dump),
		"events of an original":   post(sendForm(zipped(array(event(1, "robot.boot", ""))))),
		"events, in the old form": post(oldForm(array(event(1, "robot.boot", "")))),
	}
	for name, request := range wires {
		for _, c := range []struct {
			what   string
			change func(p *consent.Permit, ago time.Duration)
			status int
			code   string
		}{
			{"another owner", func(p *consent.Permit, ago time.Duration) { p.Account, p.Owned, p.Settled = "bob", ago, ago }, 403, consent.CodeOwnerChanged},
			{"no owner any more", func(p *consent.Permit, ago time.Duration) { p.Account, p.Owned, p.Settled = "", ago, ago }, 403, consent.CodeOwnerChanged},
			{"an opt-out", func(p *consent.Permit, ago time.Duration) { p.Allowed, p.Settled = false, ago }, 403, consent.CodeOptedOut},
			{"other settings", func(p *consent.Permit, ago time.Duration) { p.Settled = ago }, 503, ""},
		} {
			resp, body := r.within(t, request, func() {
				changed := time.Now()
				change := func(p *consent.Permit) { c.change(p, time.Since(changed)) }
				r.change.Store(&change)
			})
			want(t, name+", "+c.what, resp, body, c.status, c.code)
			r.change.Store(nil)
		}
	}
	if names, crashes, rows, n := r.names(t), r.crashed(t), r.rows(t), r.objects(t); len(names)+len(crashes)+len(rows)+n != 0 {
		t.Errorf("stored: logs %q, crashes %v, events %v, %d objects", names, crashes, rows, n)
	}
	for name, request := range wires {
		resp, body := r.within(t, request, func() {})
		want(t, name+", sent again", resp, body, 200, "")
	}
	if names, crashes, rows := r.names(t), r.crashed(t), r.rows(t); len(names) != 1 || len(crashes) != 1 || len(rows) != 1 {
		t.Errorf("stored: logs %q, crashes %v, events %v", names, crashes, rows)
	}
}
