// Package lex recognises speech with a bot of Amazon Lex V2. Only what Lex heard is used; Kennel finds the intent. Requests are signed here, because
// the SDK's module of the runtime API cannot be had.
package lex

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"

	"kennel/infra/errs"
	"kennel/speech/recognizer"
)

// Config names the bot.
type Config struct {
	AWS        aws.Config // region, credentials, and an endpoint other than Amazon's
	Bot, Alias string     // ids
	Client     *http.Client
}

// Recognizer asks RecognizeUtterance once for each utterance, each in a session of its own.
type Recognizer struct {
	cfg    Config
	base   string
	signer *v4.Signer
}

const longest = 15 * time.Second // the limit of Lex

// New returns a recogniser. It does not ask Lex.
func New(cfg Config) (*Recognizer, error) {
	if cfg.Bot == "" || cfg.Alias == "" || cfg.AWS.Credentials == nil || cfg.AWS.Region == "" {
		return nil, errs.New(errs.Invalid, "Lex bot %q, alias %q, region %q: want all of them, and credentials", cfg.Bot, cfg.Alias, cfg.AWS.Region)
	}
	if cfg.Client == nil {
		cfg.Client = &http.Client{Timeout: 10 * time.Second}
	}
	base := cmp.Or(aws.ToString(cfg.AWS.BaseEndpoint), "https://runtime-v2-lex."+cfg.AWS.Region+".amazonaws.com")
	return &Recognizer{cfg, strings.TrimSuffix(base, "/"), v4.NewSigner()}, nil
}

// Name returns "lex".
func (r *Recognizer) Name() string { return "lex" }

// Open begins an utterance; Lex is asked at its end.
func (r *Recognizer) Open(ctx context.Context, e recognizer.Expect) (recognizer.Stream, error) {
	return recognizer.Whole(ctx, longest, func(ctx context.Context, pcm []byte) (recognizer.Result, error) {
		got, err := r.ask(ctx, strings.ReplaceAll(e.Language, "-", "_"), pcm)
		if err != nil {
			return recognizer.Result{}, fmt.Errorf("lex: %w", err)
		}
		return got, nil
	}), nil
}

func (r *Recognizer) ask(ctx context.Context, locale string, pcm []byte) (recognizer.Result, error) {
	to := fmt.Sprintf("%s/bots/%s/botAliases/%s/botLocales/%s/sessions/%s/utterance",
		r.base, url.PathEscape(r.cfg.Bot), url.PathEscape(r.cfg.Alias), url.PathEscape(locale), rand.Text())
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, to, bytes.NewReader(pcm))
	if err != nil {
		return recognizer.Result{}, err
	}
	req.Header.Set("Content-Type", "audio/l16; rate=16000; channels=1")
	req.Header.Set("Response-Content-Type", "text/plain; charset=utf-8") // not spoken
	keys, err := r.cfg.AWS.Credentials.Retrieve(ctx)
	if err != nil {
		return recognizer.Result{}, fmt.Errorf("credentials: %w", err)
	}
	sum := sha256.Sum256(pcm)
	if err := r.signer.SignHTTP(ctx, keys, req, hex.EncodeToString(sum[:]), "lex", r.cfg.AWS.Region, time.Now()); err != nil {
		return recognizer.Result{}, fmt.Errorf("sign: %w", err)
	}
	resp, err := r.cfg.Client.Do(req)
	if err != nil {
		return recognizer.Result{}, err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return recognizer.Result{}, fmt.Errorf("status %s: %.80s", resp.Status, resp.Header.Get("X-Amzn-Errortype"))
	}
	text, confidence, err := parse(resp.Header.Get("X-Amz-Lex-Input-Transcript"), resp.Header.Get("X-Amz-Lex-Interpretations"))
	return recognizer.Result{Text: text, Confidence: confidence, By: "lex"}, err
}

// parse reads two headers of an answer: the transcript, and the interpretations, whose best score is the confidence; 1 if there is none.
func parse(transcript, interpretations string) (text string, confidence float64, err error) {
	if err := unpack(transcript, &text); err != nil {
		return "", 0, fmt.Errorf("x-amz-lex-input-transcript: %w", err)
	}
	var all []struct {
		Confidence *struct{ Score float64 } `json:"nluConfidence"`
	}
	if err := unpack(interpretations, &all); err != nil {
		return "", 0, fmt.Errorf("x-amz-lex-interpretations: %w", err)
	}
	if len(all) == 0 || all[0].Confidence == nil {
		return text, 1, nil
	}
	return text, min(1, max(0, all[0].Confidence.Score)), nil
}

// unpack reads JSON, gzipped, in base 64. "" is nothing.
func unpack(header string, into any) error {
	if header == "" {
		return nil
	}
	z, err := gzip.NewReader(base64.NewDecoder(base64.StdEncoding, strings.NewReader(header)))
	if err != nil {
		return err
	}
	return json.NewDecoder(io.LimitReader(z, 1<<20)).Decode(into)
}
