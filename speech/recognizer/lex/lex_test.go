package lex

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/base64"
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"

	"kennel/infra/errs"
	"kennel/speech/recognizer"
	"kennel/speech/recognizer/recognizertest"
)

// pack writes a header as Lex does.
func pack(text string) string {
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	_, _ = io.WriteString(z, text) // to memory
	_ = z.Close()
	return base64.StdEncoding.EncodeToString(b.Bytes())
}

var (
	path = regexp.MustCompile(`^/bots/BOT/botAliases/ALIAS/botLocales/en_US/sessions/[A-Z2-7]{26}/utterance$`)
	auth = regexp.MustCompile(`^AWS4-HMAC-SHA256 Credential=AKID/\d{8}/eu-west-1/lex/aws4_request, SignedHeaders=[a-z0-9;-]*host;response-content-type;x-amz-date, Signature=[0-9a-f]{64}$`)
)

func TestUtterance(t *testing.T) {
	for _, c := range []struct {
		name                        string
		transcript, interpretations string
		status                      int
		text                        string
		sure                        float64
		err                         string
	}{
		{name: "heard", transcript: pack(`"go forward"`), interpretations: pack(`[{"nluConfidence": {"score": 0.8}, "intent": {"name": "x"}}, {}]`), text: "go forward", sure: 0.8},
		{name: "no score", transcript: pack(`"go forward"`), interpretations: pack(`[{"intent": {"name": "FallbackIntent"}}]`), text: "go forward", sure: 1},
		{name: "nothing", sure: 1},
		{name: "refused", status: 403, err: "status 403 Forbidden: AccessDeniedException"},
		{name: "not base 64", transcript: "go forward", err: "x-amz-lex-input-transcript"},
		{name: "not JSON", transcript: pack("go"), err: "x-amz-lex-input-transcript: invalid character"},
		{name: "bad interpretations", interpretations: pack(`{}`), err: "x-amz-lex-interpretations"},
		{name: "slow", err: context.DeadlineExceeded.Error()},
	} {
		t.Run(c.name, func(t *testing.T) {
			srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				audio, _ := io.ReadAll(r.Body)
				if len(audio) != 3200 || !path.MatchString(r.URL.Path) || r.Header.Get("Content-Type") != "audio/l16; rate=16000; channels=1" {
					t.Errorf("%s %s, %d bytes", r.URL.Path, r.Header.Get("Content-Type"), len(audio))
				}
				if got := r.Header.Get("Authorization"); !auth.MatchString(got) {
					t.Errorf("authorization %q", got)
				}
				if c.name == "slow" {
					<-r.Context().Done()
					return
				}
				w.Header().Set("x-amz-lex-input-transcript", c.transcript)
				w.Header().Set("x-amz-lex-interpretations", c.interpretations)
				if c.status != 0 {
					w.Header().Set("x-amzn-ErrorType", "AccessDeniedException")
					w.WriteHeader(c.status)
				}
			}))
			defer srv.Close()
			r, err := New(Config{Bot: "BOT", Alias: "ALIAS", AWS: aws.Config{Region: "eu-west-1", BaseEndpoint: aws.String(srv.URL), Credentials: keys{}}})
			if err != nil {
				t.Fatal(err)
			}
			ctx := t.Context()
			if c.name == "slow" {
				var cancel context.CancelFunc
				ctx, cancel = context.WithTimeout(ctx, 200*time.Millisecond)
				defer cancel()
			}
			got, err := recognizertest.Listen(ctx, r, make([]int16, 1600))
			if c.err != "" {
				if err == nil || !strings.Contains(err.Error(), c.err) || !strings.HasPrefix(err.Error(), "lex: ") {
					t.Errorf("%v, want %q", err, c.err)
				}
				return
			}
			if want := (recognizer.Result{Text: c.text, Confidence: c.sure, By: "lex"}); err != nil || got != want {
				t.Errorf("%+v, %v, want %+v", got, err, want)
			}
		})
	}
}

type keys struct{}

func (keys) Retrieve(context.Context) (aws.Credentials, error) {
	return aws.Credentials{AccessKeyID: "AKID", SecretAccessKey: "secret"}, nil
}

func TestNew(t *testing.T) {
	if _, err := New(Config{Bot: "BOT"}); errs.KindOf(err) != errs.Invalid {
		t.Errorf("no alias: %v, want invalid", err)
	}
	r, err := New(Config{Bot: "BOT", Alias: "A", AWS: aws.Config{Region: "eu-west-1", Credentials: keys{}}})
	if err != nil || r.base != "https://runtime-v2-lex.eu-west-1.amazonaws.com" {
		t.Errorf("%+v, %v", r, err)
	}
}

func FuzzParse(f *testing.F) {
	f.Add(pack(`"go forward"`), pack(`[{"nluConfidence": {"score": 0.8}}]`))
	f.Fuzz(func(t *testing.T, transcript, interpretations string) {
		if text, sure, err := parse(transcript, interpretations); !(sure >= 0 && sure <= 1) || err != nil && text != "" {
			t.Errorf("%q %v %v", text, sure, err)
		}
	})
}
