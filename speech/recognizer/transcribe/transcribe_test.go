package transcribe

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/protocol/eventstream"

	"kennel/speech/recognizer"
	"kennel/speech/recognizer/recognizertest"
)

type object = map[string]any

// transcript is an event with one result.
func transcript(text string, partial bool, confidence ...float64) eventstream.Message {
	items := []object{}
	for _, c := range confidence {
		items = append(items, object{"Confidence": c, "Content": "word", "Type": "pronunciation"})
	}
	b, _ := json.Marshal(object{"Transcript": object{"Results": []object{
		{"IsPartial": partial, "Alternatives": []object{{"Transcript": text, "Items": items}}}}}})
	return event("event", ":event-type", "TranscriptEvent", b)
}

func event(kind, header, value string, payload []byte) eventstream.Message {
	var h eventstream.Headers
	h.Set(":message-type", eventstream.StringValue(kind))
	h.Set(header, eventstream.StringValue(value))
	h.Set(":content-type", eventstream.StringValue("application/json"))
	return eventstream.Message{Headers: h, Payload: payload}
}

// service speaks Transcribe's protocol over HTTP/2: signed frames in, frames out.
type service struct {
	t      *testing.T
	status int
	first  []eventstream.Message // at the first audio
	last   []eventstream.Message // at the end of the audio
	raw    string                // instead of last
	hang   bool                  // after the end of the audio
}

func (s *service) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.ProtoMajor != 2 || r.Header.Get("X-Amzn-Transcribe-Sample-Rate") != "16000" || r.Header.Get("X-Amzn-Transcribe-Media-Encoding") != "pcm" ||
		r.Header.Get("X-Amzn-Transcribe-Language-Code") != "en-US" || !strings.HasPrefix(r.Header.Get("Authorization"), "AWS4-HMAC-SHA256 Credential=AKID/") {
		s.t.Errorf("request %s %s %v", r.Proto, r.URL, r.Header)
	}
	if s.status != 0 {
		w.Header().Set("X-Amzn-ErrorType", "LimitExceededException")
		w.WriteHeader(s.status)
		_, _ = io.WriteString(w, `{"Message": "too many streams"}`) // the client may be gone
		return
	}
	w.Header().Set("Content-Type", "application/vnd.amazon.eventstream")
	w.WriteHeader(http.StatusOK)
	flush(w)
	if heard := s.hear(w, r); heard != 2*8000 {
		s.t.Errorf("%d bytes of audio, want 16000", heard)
	}
	if s.hang {
		<-r.Context().Done()
		return
	}
	_, _ = io.WriteString(w, s.raw)
	send(w, s.last)
}

// hear reads frames until the empty one that ends the audio.
func (s *service) hear(w http.ResponseWriter, r *http.Request) (bytesHeard int) {
	decode := eventstream.NewDecoder()
	for {
		outer, err := decode.Decode(r.Body, nil)
		if err != nil {
			s.t.Errorf("frame: %v", err)
			return bytesHeard
		}
		if outer.Headers.Get(":chunk-signature") == nil {
			s.t.Error("frame without a signature")
		}
		if len(outer.Payload) == 0 {
			return bytesHeard
		}
		inner, err := eventstream.NewDecoder().Decode(bytes.NewReader(outer.Payload), nil)
		if err != nil || inner.Headers.Get(":event-type").String() != "AudioEvent" {
			s.t.Errorf("event %v, %v", inner.Headers, err)
			return bytesHeard
		}
		if len(inner.Payload) == 0 {
			return bytesHeard
		}
		if bytesHeard == 0 {
			send(w, s.first)
		}
		bytesHeard += len(inner.Payload)
	}
}

func send(w http.ResponseWriter, all []eventstream.Message) {
	encode := eventstream.NewEncoder()
	for _, m := range all {
		_ = encode.Encode(w, m) // the client may be gone
	}
	flush(w)
}

func flush(w http.ResponseWriter) { _ = http.NewResponseController(w).Flush() }

func start(t *testing.T, s *service) *Recognizer {
	s.t = t
	srv := httptest.NewUnstartedServer(s)
	srv.EnableHTTP2 = true
	srv.StartTLS()
	t.Cleanup(srv.Close)
	return New(aws.Config{Region: "eu-west-1", BaseEndpoint: aws.String(srv.URL), HTTPClient: srv.Client(), Credentials: keys{}})
}

type keys struct{}

func (keys) Retrieve(context.Context) (aws.Credentials, error) {
	return aws.Credentials{AccessKeyID: "AKID", SecretAccessKey: "secret"}, nil
}

func TestService(t *testing.T) {
	for _, c := range []struct {
		name string
		s    service
		text string
		sure float64
		err  string
	}{
		{"one result", service{first: []eventstream.Message{transcript("Go", true)}, last: []eventstream.Message{transcript("Go forward.", false, 1, 0.5)}}, "Go forward.", 0.75, ""},
		{"two results", service{first: []eventstream.Message{transcript("Hey.", false)}, last: []eventstream.Message{transcript("Go", true), transcript("Go on.", false)}}, "Hey. Go on.", 1, ""},
		{"nothing said", service{}, "", 1, ""},
		{"unknown event", service{last: []eventstream.Message{event("event", ":event-type", "Weather", []byte("{}")), transcript("Go.", false)}}, "Go.", 1, ""},
		{"refused", service{status: 429}, "", 0, "LimitExceededException"},
		{"fails late", service{last: []eventstream.Message{event("exception", ":exception-type", "InternalFailureException", []byte(`{"Message": "sorry"}`))}}, "", 0, "sorry"},
		{"garbage", service{raw: "HTTP/1.1 200 OK\r\n\r\n garbage"}, "", 0, "transcribe: "},
		{"slow", service{hang: true}, "", 0, context.DeadlineExceeded.Error()},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := start(t, &c.s)
			ctx, cancel := context.WithCancel(t.Context())
			if c.s.hang {
				ctx, cancel = context.WithTimeout(t.Context(), 500*time.Millisecond)
			}
			defer cancel()
			got, err := recognizertest.Listen(ctx, r, make([]int16, 8000))
			if c.err != "" {
				if err == nil || !strings.Contains(err.Error(), c.err) {
					t.Errorf("%+v, %v, want %q", got, err, c.err)
				}
				return
			}
			if want := (recognizer.Result{Text: c.text, Confidence: c.sure, By: "transcribe"}); err != nil || got != want {
				t.Errorf("%+v, %v, want %+v", got, err, want)
			}
		})
	}
}

func TestPartial(t *testing.T) {
	r := start(t, &service{first: []eventstream.Message{transcript("Go for", true)}, last: []eventstream.Message{transcript("Go forward.", false)}})
	s, err := r.Open(t.Context(), recognizer.Expect{Language: "en-US"})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if err := s.Write(make([]int16, 8000)); err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(time.Minute); s.Partial() != "Go for"; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("partial %q, want Go for", s.Partial())
		}
	}
	if got, err := s.Finish(); err != nil || got.Text != "Go forward." {
		t.Errorf("%+v, %v", got, err)
	}
}
