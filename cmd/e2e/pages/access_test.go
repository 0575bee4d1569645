package pages

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/emptypb"

	"kennel/cloud/access"
	"kennel/cloud/openapi/openapitest"
	"kennel/cmd/e2e/housetest"
	"kennel/infra/api/large"
	"kennel/infra/api/topics"
	"kennel/infra/auth"
	"kennel/infra/kit/kithttp"
	"kennel/infra/mqtt"
	"kennel/infra/thing"
)

// refusedBy tells refusals for the role from everything else that may be wrong with a request of the walk.
func refusedBy(r access.Rule, code int, body []byte, location string) bool {
	if r.Page && len(r.Roles) > 0 && (code == http.StatusForbidden || code == http.StatusUnauthorized ||
		code == http.StatusSeeOther && (strings.HasPrefix(location, "/login") || strings.HasPrefix(location, "/my/login") || location == "/my")) { // an owner at the console's front door
		return true
	}
	return code == http.StatusUnauthorized && strings.Contains(string(body), "sign in first") ||
		code == http.StatusForbidden && strings.Contains(string(body), "may not do this")
}

// TestAccessMatrix walks the table of rights over the real transports (what must hold 2): every HTTP route and page in every role, every
// request of robots with and without a certificate, every gRPC call without what it needs, every topic for its own thing and for another.
func TestAccessMatrix(t *testing.T) {
	h := housetest.New(t, "-robots", "0")
	h.Start()
	admin := h.Operator(t)
	admin.Do("POST", "/v1/things", map[string]string{"thing": "vic:00e2ffff"}, nil)
	people := map[auth.Role]*housetest.Person{"": h.Stranger(t), auth.Owner: h.Owner(t, "owner@example.com", "Owner")}
	for _, role := range auth.Staff {
		people[role] = h.Staff(t, admin, role)
	}
	hostile(t, h, admin, people)
	roles := append([]auth.Role{"", auth.Owner}, auth.Staff...)

	// Those that end the session they are asked with come last.
	names := access.HTTP.Names()
	slices.SortStableFunc(names, func(a, b string) int { return ending(a) - ending(b) })
	fill := strings.NewReplacer("{thing}", "vic:00e2ffff", "{doc}", "vic.RobotSettings", "{id}", "00000000-0000-4000-8000-000000000000",
		"{session}", "none", "{cohort}", "none", "{action}", "pause",
		"{token}", "00000000-0000-4000-8000-000000000000", "{app}", "none", "{batch}", "no-such-batch", "{species}", "vic", "{userid}", "me", "{username}", "nobody", "{esn}", "00e2ffff",
		"{file}", "device.crl", "{service}", "jdocs", "{method}", "read", "{$}", "", "{path...}", "no-such-page")
	asked := 0
	refusedReads := map[string]bool{}
	outcomes := map[string]string{} // of each change that a person asked for, as the audit log should tell it
	for _, name := range names {
		rule := access.HTTP[name]
		method, path, ok := strings.Cut(name, " ")
		if !ok {
			method, path = http.MethodGet, name
		}
		for _, role := range roles {
			p := people[role]
			req, err := http.NewRequestWithContext(t.Context(), method, p.API+fill.Replace(path), strings.NewReader("{}"))
			if err != nil {
				t.Fatal(err)
			}
			switch {
			case p.Token == "":
			case rule.Page:
				req.AddCookie(p.Cookie())
			default:
				req.Header.Set("Authorization", "Bearer "+p.Token)
			}
			req.Header.Set("Sec-Fetch-Site", "same-origin")
			resp, err := p.HTTP.Do(req)
			if err != nil {
				t.Errorf("%s as %q: %v", name, role, err)
				continue
			}
			var body []byte
			if resp.Header.Get("Content-Type") != "text/event-stream" {
				body, _ = io.ReadAll(io.LimitReader(resp.Body, 1<<20)) // what is missing shows below
			}
			resp.Body.Close()
			asked++
			if resp.Header.Get("Content-Type") != "text/event-stream" {
				if err := openapitest.Check(method, req.URL.Path, resp.StatusCode, resp.Header.Get("Content-Type"), body); err != nil {
					t.Errorf("as %q: %v", role, err)
				}
			}
			if rule.Changes() && role != "" && resp.StatusCode != http.StatusBadRequest && !strings.Contains(string(body), "session_over") {
				outcomes[string(role)+" "+name] = map[bool]string{true: "done", false: "not done: " + kithttp.KindOfStatus(resp.StatusCode)}[resp.StatusCode < 400]
			}
			if !rule.Changes() && role != "" && resp.StatusCode == http.StatusForbidden {
				refusedReads[string(role)+" "+name] = true
			}
			may := len(rule.Roles) == 0 || slices.Contains(rule.Roles, role)
			got := refusedBy(rule, resp.StatusCode, body, resp.Header.Get("Location"))
			switch {
			case may && rule.Own && role == auth.Owner: // who owns no robot gets nothing, in whatever words
				if resp.StatusCode < 300 {
					t.Errorf("%s as an owner of nothing: %d %.200s", name, resp.StatusCode, body)
				}
			case ending(name) == 2 && strings.Contains(string(body), "session_over"): // the other ways out were tried before
			case got == may || strings.Contains(string(body), "session_over"):
				t.Errorf("%s as %q: refused %v, want %v: %d %.200s", name, role, got, !may, resp.StatusCode, body)
			}
			if strings.Contains(string(body), "no_such_operation") {
				t.Errorf("%s is in the table and nobody serves it", name)
			}
		}
	}
	t.Logf("%d requests over HTTPS", asked)
	auditTold(t, h, outcomes, refusedReads)

	id, cert := h.Certified(t, admin, "vic:00e2bb01")
	walkRequests(t, h, cert)
	walkCalls(t, h)
	walkTopics(t, h, id, cert)
}

// auditTold checks that the audit log has the outcome of each change that was asked for: a refused one as refused, a successful one as done. Of refusals to
// read it has so many as it takes of one person at once.
func auditTold(t *testing.T, h *housetest.House, outcomes map[string]string, refusedReads map[string]bool) {
	t.Helper()
	var lines []struct {
		ID                           int64
		Role, Action, Detail, Result string
	}
	const page = 1000
	for op, before := h.Operator(t), ""; ; {
		more := lines[:0:0]
		op.Do("GET", "/v1/audit?limit="+fmt.Sprint(page)+before, nil, &more)
		if lines = append(lines, more...); len(more) < page {
			break
		}
		before = fmt.Sprint("&before=", more[page-1].ID)
	}
	byRoute, byAction := map[string]string{}, map[string]int{} // an operation may have lines of its own, which name an action
	for _, l := range lines {
		if l.Action == "request" && !access.HTTP[l.Detail].Plain {
			t.Errorf("%s wrote no line before it was done", l.Detail)
		}
		switch what := l.Role + " " + l.Detail; {
		case l.Action != "refused" && l.Action != "request":
			byAction[l.Role+" "+l.Result]++
		case byRoute[what] == "": // the newest
			byRoute[what] = l.Result
		}
	}
	for what, want := range outcomes {
		role, _, _ := strings.Cut(what, " ")
		switch got := byRoute[what]; {
		case got == "" && byAction[role+" "+want] > 0:
			byAction[role+" "+want]--
		case got != want:
			t.Errorf("%s: %q in the audit log, want %q", what, got, want)
		}
	}
	missing := 0
	for what := range refusedReads {
		if byRoute[what] != "not done: denied" {
			missing++
		}
	}
	if missing > 0 && len(refusedReads)-missing < 200 {
		t.Errorf("%d of %d refusals to read are not in the audit log", missing, len(refusedReads))
	}
	t.Logf("%d changes asked for, %d readings refused, of which %d are told", len(outcomes), len(refusedReads), len(refusedReads)-missing)
}

// ending returns a sort key: operations that end sessions come after all others, and ending one's own session comes last.
func ending(name string) int {
	switch {
	case strings.Contains(name, "logout"):
		return 2
	case strings.Contains(name, "sessions") || strings.Contains(name, "password"):
		return 1
	}
	return 0
}

// walkRequests sends every request that robots may make, with and without a robot's certificate, over the transport for large requests,
// which has the same handlers as MQTT.
func walkRequests(t *testing.T, h *housetest.House, cert tls.Certificate) {
	t.Helper()
	for who, certs := range map[string][]tls.Certificate{"a robot": {cert}, "nobody": nil} {
		conf := h.Trust(t, certs...)
		conf.NextProtos = []string{large.ALPN, "http/1.1"}
		transport := &http.Transport{TLSClientConfig: conf, DialTLSContext: func(ctx context.Context, network, addr string) (net.Conn, error) {
			return (&tls.Dialer{Config: conf}).DialContext(ctx, network, addr)
		}}
		client := &http.Client{Transport: transport, Timeout: time.Minute}
		for _, name := range access.Requests.Names() {
			service, method, _ := strings.Cut(name, "/")
			resp, err := client.Post(h.Ready.Endpoints["api"]+large.Path(service, method), "application/json", strings.NewReader("{}"))
			if err != nil {
				t.Errorf("%s as %s: %v", name, who, err)
				continue
			}
			body, _ := io.ReadAll(resp.Body) // as above
			resp.Body.Close()
			if refused := resp.StatusCode == http.StatusUnauthorized && strings.Contains(string(body), "certificate"); refused != (certs == nil) {
				t.Errorf("%s as %s: %d %.200s", name, who, resp.StatusCode, body)
			}
		}
		transport.CloseIdleConnections()
	}
}

// walkCalls makes every gRPC call with nothing to show for it.
func walkCalls(t *testing.T, h *housetest.House) {
	t.Helper()
	conn, err := grpc.NewClient("passthrough:///"+h.RobotsPort(), grpc.WithTransportCredentials(credentials.NewTLS(h.Trust(t))))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	for _, name := range access.Calls.Names() {
		err := conn.Invoke(t.Context(), name, &emptypb.Empty{}, &emptypb.Empty{})
		want := []codes.Code{codes.Unauthenticated}
		if strings.HasPrefix(access.Calls[name].By, "nothing") { // what it says and does is the same for all
			want = []codes.Code{codes.OK, codes.Unimplemented}
		}
		if !slices.Contains(want, status.Code(err)) {
			t.Errorf("%s without credentials: %v, want one of %v", name, err, want)
		}
	}
	if err := conn.Invoke(t.Context(), "/tokenpb.Token/MakeMeAdmin", &emptypb.Empty{}, &emptypb.Empty{}); status.Code(err) != codes.Unimplemented {
		t.Errorf("a call in no table: %v", err)
	}
}

// walkTopics subscribes and publishes as a thing: its own topics, another's, the cloud's (VEC-FLE-01).
func walkTopics(t *testing.T, h *housetest.House, id thing.ID, cert tls.Certificate) {
	t.Helper()
	const other = thing.ID("vic:00e2ffff")
	connect := func() (c *mqtt.Client, down chan error) {
		down = make(chan error, 10)
		up := make(chan struct{}, 10)
		c, err := mqtt.New(mqtt.Config{URL: h.Ready.Endpoints["mqtt"], ClientID: string(id),
			TLS:       func() (*tls.Config, error) { return h.Trust(t, cert), nil },
			OnConnect: func(context.Context, *mqtt.Client) error { up <- struct{}{}; return nil }, OnDown: func(err error) { down <- err }})
		if err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithCancel(context.WithoutCancel(t.Context()))
		done := make(chan error, 1)
		go func() { done <- c.Run(ctx) }()
		t.Cleanup(func() { stop(); <-done })
		select {
		case <-up:
		case err := <-down:
			t.Fatalf("the thing is not let in: %v", err)
		case <-time.After(time.Minute):
			t.Fatal("the thing is not let in")
		}
		return c, down
	}
	within := func(do func(ctx context.Context) error) error {
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		defer cancel()
		return do(ctx)
	}
	c, _ := connect()
	for _, f := range topics.ThingFilters(id) {
		if err := within(func(ctx context.Context) error { return c.Subscribe(ctx, 1, f) }); err != nil {
			t.Errorf("subscribe %s: %v", f, err)
		}
	}
	for _, topic := range []string{topics.UpTopic(id, topics.DAS), topics.UpTopic(id, topics.Status), topics.ReqTopic(id, "jdocs", "read")} {
		if err := within(func(ctx context.Context) error { return c.Publish(ctx, topic, 1, false, []byte("{}")) }); err != nil {
			t.Errorf("publish %s: %v", topic, err)
		}
	}
	for _, f := range slices.Concat(topics.ThingFilters(other), topics.CloudFilters(),
		[]string{"#", "kennel/#", "kennel/+/down/+", "$kennel/broker/refused", "$SYS/#"}) {
		if err := within(func(ctx context.Context) error { return c.Subscribe(ctx, 1, f) }); err == nil {
			t.Errorf("a thing may subscribe to %s", f)
		}
	}
	for _, topic := range []string{topics.UpTopic(other, topics.DAS), topics.DownTopic(id, topics.Cmd), topics.DownTopic(other, topics.Cmd),
		topics.ResTopic(other, "1"), "$kennel/broker/kick", "anything"} {
		c, down := connect()
		// the broker ends the session instead of an answer
		_ = within(func(ctx context.Context) error { return c.Publish(ctx, topic, 1, false, []byte("{}")) })
		select {
		case <-down:
		case <-time.After(20 * time.Second):
			t.Errorf("a thing may publish on %s", topic)
		}
	}
}
