// Package queuetest is a queue for tests: an HTTP server that speaks the JSON protocol of Amazon SQS as published, as much of it as a
// consumer needs, and refuses requests that are not signed for it.
package queuetest

import (
	"bytes"
	"cmp"
	"crypto/md5"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"kennel/infra/awsconfig"
	"kennel/infra/queue"
)

// Region and Name of the queue.
const (
	Region = "eu-central-1"
	Name   = "uplink"
)

const accessKey = "AKIDTEST"

// second is how long a second of SQS lasts here.
const second = 20 * time.Millisecond

// Server is a queue. It is safe for concurrent use.
type Server struct {
	URL    string       // of the queue
	Config queue.Config // that reaches it

	mu       sync.Mutex
	changed  chan struct{} // closed and replaced when a message becomes visible or goes
	messages []*message
	next     int
	fail     int // requests to refuse
	deleted  int
	problems []string
}

type message struct {
	id, body, receipt string
	hiddenUntil       time.Time
	receives          int
}

// Start starts a queue that ends with the test; requests that no SQS would take fail it.
func Start(t testing.TB) *Server {
	t.Helper()
	s := &Server{changed: make(chan struct{})}
	srv := httptest.NewServer(s)
	s.URL = srv.URL + "/123456789012/" + Name
	dir := t.TempDir()
	write := func(name, text string) string {
		file := filepath.Join(dir, name)
		if err := os.WriteFile(file, []byte(text+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		return file
	}
	s.Config = queue.Config{URL: s.URL, AWS: awsconfig.Config{Region: Region, AccessKeyFile: write("access", accessKey),
		SecretKeyFile: write("secret", "not so secret")}}
	t.Cleanup(func() {
		srv.CloseClientConnections() // long polls
		srv.Close()
		for _, p := range s.problems {
			t.Errorf("queue: %s", p)
		}
	})
	return s
}

// Put adds messages.
func (s *Server) Put(bodies ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, b := range bodies {
		s.next++
		s.messages = append(s.messages, &message{id: fmt.Sprintf("m%d", s.next), body: b})
	}
	s.wake()
}

// Fail makes the next n requests fail as an overloaded service does.
func (s *Server) Fail(n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fail = n
}

// Left returns how many messages there are, visible or not, and how many were deleted.
func (s *Server) Left() (left, deleted int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.messages), s.deleted
}

// Changed returns a channel that is closed at the next change.
func (s *Server) Changed() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.changed
}

func (s *Server) wake() {
	close(s.changed)
	s.changed = make(chan struct{})
}

var signed = regexp.MustCompile(`^AWS4-HMAC-SHA256 Credential=` + accessKey + `/\d{8}/` + Region +
	`/sqs/aws4_request, SignedHeaders=([a-z0-9;-]+), Signature=[0-9a-f]{64}$`)

func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	target, ok := strings.CutPrefix(r.Header.Get("X-Amz-Target"), "AmazonSQS.")
	sig := signed.FindStringSubmatch(r.Header.Get("Authorization"))
	var covers []string
	if sig != nil {
		covers = strings.Split(sig[1], ";")
	}
	has := func(h string) bool {
		for _, c := range covers {
			if c == h {
				return true
			}
		}
		return false
	}
	switch {
	case !ok || r.Method != "POST" || r.URL.Path != "/" || r.Header.Get("Content-Type") != "application/x-amz-json-1.0":
		s.problem(w, "%s %s, X-Amz-Target %q, Content-Type %q: want POST / with AmazonSQS.… and application/x-amz-json-1.0", r.Method, r.URL.Path,
			r.Header.Get("X-Amz-Target"), r.Header.Get("Content-Type"))
		return
	case !has("host") || !has("x-amz-date") || !has("x-amz-target"):
		s.problem(w, "Authorization %q: want SigV4 of %s for sqs in %s over host, x-amz-date, x-amz-target", r.Header.Get("Authorization"),
			accessKey, Region)
		return
	}
	s.mu.Lock()
	failing := s.fail > 0
	if failing {
		s.fail--
	}
	s.mu.Unlock()
	if failing {
		refuse(w, http.StatusServiceUnavailable, "com.amazonaws.sqs#ServiceUnavailable", "planted")
		return
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return // the client stopped while it was asking
	}
	switch target {
	case "ReceiveMessage":
		s.receive(w, r, body)
	case "DeleteMessageBatch":
		s.delete(w, body)
	case "GetQueueAttributes":
		s.attributes(w, body)
	default:
		s.problem(w, "operation %s: a consumer needs ReceiveMessage, DeleteMessageBatch and GetQueueAttributes", target)
	}
}

// attributes says how many messages are there and not given out.
func (s *Server) attributes(w http.ResponseWriter, body []byte) {
	const waiting = "ApproximateNumberOfMessages"
	var in struct {
		QueueURL       string `json:"QueueUrl"`
		AttributeNames []string
	}
	if err := json.Unmarshal(body, &in); err != nil || in.QueueURL != s.URL || len(in.AttributeNames) != 1 || in.AttributeNames[0] != waiting {
		s.problem(w, "GetQueueAttributes %+v: %v", in, err)
		return
	}
	n, now := 0, time.Now()
	s.mu.Lock()
	for _, m := range s.messages {
		if !now.Before(m.hiddenUntil) {
			n++
		}
	}
	s.mu.Unlock()
	w.Header().Set("Content-Type", "application/x-amz-json-1.0")
	_ = json.NewEncoder(w).Encode(map[string]any{"Attributes": map[string]string{waiting: fmt.Sprint(n)}}) // the client continues without it
}

func refuse(w http.ResponseWriter, status int, kind, text string) {
	w.Header().Set("Content-Type", "application/x-amz-json-1.0")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(map[string]string{"__type": kind, "message": text}) // the client continues without it
}

func (s *Server) problem(w http.ResponseWriter, format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	s.mu.Lock()
	s.problems = append(s.problems, text)
	s.mu.Unlock()
	refuse(w, http.StatusBadRequest, "com.amazonaws.sqs#InvalidRequest", text)
}

func (s *Server) receive(w http.ResponseWriter, r *http.Request, body []byte) {
	var in struct {
		QueueURL                    string `json:"QueueUrl"`
		MaxNumberOfMessages         int
		WaitTimeSeconds             int
		VisibilityTimeout           int
		MessageSystemAttributeNames []string
	}
	dec := json.NewDecoder(bytes.NewReader(body))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&in); err != nil || in.QueueURL != s.URL || in.MaxNumberOfMessages < 1 || in.MaxNumberOfMessages > 10 ||
		in.WaitTimeSeconds > 20 {
		s.problem(w, "ReceiveMessage %+v: %v", in, err)
		return
	}
	deadline := time.Now().Add(time.Duration(in.WaitTimeSeconds) * second)
	for {
		found, soonest := s.visible(in.MaxNumberOfMessages, time.Duration(in.VisibilityTimeout)*second)
		if len(found) > 0 || !time.Now().Before(deadline) {
			w.Header().Set("Content-Type", "application/x-amz-json-1.0")
			_ = json.NewEncoder(w).Encode(map[string]any{"Messages": found}) // the client continues without it
			return
		}
		wait := time.Until(deadline)
		if !soonest.IsZero() {
			wait = min(wait, time.Until(soonest))
		}
		select {
		case <-s.Changed():
		case <-time.After(wait):
		case <-r.Context().Done():
			return
		}
	}
}

func (s *Server) visible(most int, hide time.Duration) (found []map[string]any, soonest time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	for _, m := range s.messages {
		if now.Before(m.hiddenUntil) {
			if soonest.IsZero() || m.hiddenUntil.Before(soonest) {
				soonest = m.hiddenUntil
			}
			continue
		}
		if len(found) == most {
			break
		}
		m.receives++
		m.hiddenUntil = now.Add(hide)
		m.receipt = fmt.Sprintf("%s-%d", m.id, m.receives)
		sum := md5.Sum([]byte(m.body))
		found = append(found, map[string]any{
			"MessageId": m.id, "ReceiptHandle": m.receipt, "Body": m.body, "MD5OfBody": hex.EncodeToString(sum[:]),
			"Attributes": map[string]string{"ApproximateReceiveCount": fmt.Sprint(m.receives)},
		})
	}
	return found, soonest
}

func (s *Server) delete(w http.ResponseWriter, body []byte) {
	type entry struct {
		ID            string `json:"Id"`
		ReceiptHandle string
	}
	var in struct {
		QueueURL string `json:"QueueUrl"`
		Entries  []entry
	}
	if err := json.Unmarshal(body, &in); err != nil || in.QueueURL != s.URL || len(in.Entries) < 1 || len(in.Entries) > 10 {
		s.problem(w, "DeleteMessageBatch %+v: %v", in, err)
		return
	}
	s.mu.Lock()
	gone := map[string]bool{}
	var ok []map[string]string
	for _, e := range in.Entries {
		if cmp.Or(e.ID, e.ReceiptHandle) != "" {
			gone[e.ReceiptHandle] = true
			ok = append(ok, map[string]string{"Id": e.ID})
		}
	}
	kept := s.messages[:0:0]
	for _, m := range s.messages {
		if m.receipt == "" || !gone[m.receipt] {
			kept = append(kept, m)
		}
	}
	s.deleted += len(s.messages) - len(kept)
	s.messages = kept
	s.wake()
	s.mu.Unlock()
	w.Header().Set("Content-Type", "application/x-amz-json-1.0")
	_ = json.NewEncoder(w).Encode(map[string]any{"Successful": ok, "Failed": []string{}}) // the client continues without it
}
