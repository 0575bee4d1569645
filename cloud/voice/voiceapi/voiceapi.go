// Package voiceapi is package voice over HTTP and as pages of the console:
//
//	GET    /v1/voice/stats?days=                                              sums by version and language
//	GET    /v1/voice/sessions?failed=&step=&version=&language=&days=&limit=   the latest first
//	GET    /v1/voice/unmatched?days=&limit=                                   phrases that no robot understood
//	GET    /v1/things/{thing}/voice?limit=                                    sessions of one robot, for its owner too
//	POST   /v1/speech/try?language=&kind=                                     what the service makes of a recording, step by step
//	GET    /v1/my/robots/{thing}/audio                                        whether its owner wants audio kept, and what is kept
//	PUT    /v1/my/robots/{thing}/audio {keep}                                 changes that; without the wish all is deleted
//	GET    /v1/my/robots/{thing}/audio/{clip}                            one recording
//	GET    /v1/intents/custom?thing=                                          custom intents of the fleet and of a robot
//	POST   /v1/intents/custom {thing, name, phrases, languages, reaction, overrides}
//	DELETE /v1/intents/custom/{id}
package voiceapi

import (
	"cmp"
	"context"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"time"

	"github.com/go-kit/kit/endpoint"

	"kennel/cloud/customs"
	"kennel/cloud/voice"
	"kennel/infra/auth"
	"kennel/infra/errs"
	"kennel/infra/kit"
	"kennel/infra/kit/kithttp"
	"kennel/infra/logging"
	"kennel/infra/thing"
	"kennel/speech"
	"kennel/speech/session"
)

const (
	timeout = 10 * time.Second
	maxBody = 1 << 10
)

// AuditAudio is the action in the audit log of an owner who wants audio kept, or no longer.
const AuditAudio = "voice.audio"

// Config holds what the endpoints need.
type Config struct {
	Voice *voice.Service
	Audio *voice.Audio
	// Customs are the intents of the operators' own.
	Customs *customs.Service
	// Speech returns the parts of the speech service; Unavailable if there is none.
	Speech func() (speech.Config, error)
	Known  func(ctx context.Context, id thing.ID) error
	Owns   auth.Owns
	Audit  func(ctx context.Context, action, object, detail string) error
	Log    *slog.Logger
}

// The answers.
type (
	Stats     = voice.Stats
	Session   = voice.Session
	Unmatched = voice.Unmatched
	Trial     = voice.Trial
	AudioWish = voice.AudioWish
)

// Bounds of the parameters.
const (
	MaxDays  = voice.MaxDays
	MaxLimit = voice.MaxLimit
)

// Keep is the body of a change of an owner's wish.
type Keep struct {
	Keep bool `json:"keep"`
}

type request struct {
	which session.Which
	days  int
	keep  bool
}

// Mount adds the endpoints to mux.
func Mount(mux *http.ServeMux, c Config) {
	mountCustoms(mux, c)
	wrap := endpoint.Chain(kit.Recover(c.Log), kit.Timeout(timeout))
	staff := endpoint.Chain(wrap, auth.Require(auth.Staff...))
	of := func(r request) thing.ID { return r.which.Thing }
	own := func(roles ...auth.Role) endpoint.Middleware {
		return endpoint.Chain(wrap, auth.RequireOwn(c.Owns, of, roles...))
	}
	mux.Handle("GET /v1/voice/stats", kithttp.Handler(staff(kit.Typed(func(ctx context.Context, r request) (voice.Stats, error) {
		return c.Voice.Stats(ctx, r.days)
	})), decode("days")))
	mux.Handle("GET /v1/voice/unmatched", kithttp.Handler(staff(kit.Typed(func(ctx context.Context, r request) (voice.Unmatched, error) {
		return c.Voice.Unmatched(ctx, r.days, r.which.Limit)
	})), decode("days", "limit")))
	mux.Handle("GET /v1/voice/sessions", kithttp.Handler(staff(kit.Typed(func(ctx context.Context, r request) ([]voice.Session, error) {
		return c.Voice.Sessions(ctx, r.which)
	})), decode(filters...)))
	mux.Handle("GET /v1/things/{thing}/voice", kithttp.Handler(own(auth.Staff...)(kit.Typed(func(ctx context.Context, r request) ([]voice.Session, error) {
		if err := c.Known(ctx, r.which.Thing); err != nil {
			return nil, err
		}
		r.which.Since, _ = auth.OwnedSince(ctx)
		return c.Voice.Sessions(ctx, r.which)
	})), decode("limit")))
	tries := endpoint.Chain(wrap, auth.Require(auth.Changers...))
	mux.Handle("POST /v1/speech/try", kithttp.Handler(tries(kit.Typed(func(ctx context.Context, t try) (voice.Trial, error) {
		cfg, err := c.Speech()
		if err != nil {
			return voice.Trial{}, err
		}
		return voice.Try(ctx, cfg, t.file, t.language, t.kind)
	})), decodeTry))
	mux.Handle("GET /v1/my/robots/{thing}/audio", kithttp.Handler(own()(kit.Typed(func(ctx context.Context, r request) (voice.AudioWish, error) {
		return c.Audio.Wish(ctx, r.which.Thing)
	})), decode()))
	mux.Handle("PUT /v1/my/robots/{thing}/audio", kithttp.Handler(own()(kit.Typed(func(ctx context.Context, r request) (voice.AudioWish, error) {
		if err := c.Audit(ctx, AuditAudio, r.which.Thing.String(), strconv.FormatBool(r.keep)); err != nil {
			return voice.AudioWish{}, err
		}
		if err := c.Audio.Set(ctx, r.which.Thing, auth.CallerFrom(ctx).Account, r.keep); err != nil {
			return voice.AudioWish{}, err
		}
		return c.Audio.Wish(ctx, r.which.Thing)
	})), func(r *http.Request) (any, error) {
		id, err := kithttp.Thing(r)
		var k Keep
		if err == nil {
			err = kithttp.ReadJSON(r, &k, maxBody)
		}
		return request{which: session.Which{Thing: id}, keep: k.Keep}, err
	}))
	mux.Handle("GET /v1/my/robots/{thing}/audio/{clip}", listen{c.Audio, own()(kit.Typed(func(_ context.Context, r request) (any, error) { return nil, nil })), c.Log})
}

type try struct {
	file     []byte
	language string
	kind     speech.Kind
}

func decodeTry(r *http.Request) (any, error) {
	q := r.URL.Query()
	t := try{language: q.Get("language"), kind: speech.Kind(cmp.Or(q.Get("kind"), string(speech.Intent)))}
	kinds := []speech.Kind{speech.Intent, speech.Knowledge, speech.Graph}
	if !slices.Contains(kinds, t.kind) {
		return nil, errs.New(errs.Invalid, "kind %.20q: want one of %s", t.kind, errs.List(kinds))
	}
	var err error
	if t.file, err = io.ReadAll(io.LimitReader(r.Body, voice.MaxTry+1)); err != nil {
		return nil, errs.New(errs.Invalid, "the recording did not come: %w", err)
	}
	if len(t.file) > voice.MaxTry {
		return nil, errs.New(errs.Invalid, "a recording of more than %d kB: want at most 30 s", voice.MaxTry>>10)
	}
	return t, nil
}

// listen sends one recording.
type listen struct {
	audio *voice.Audio
	admit endpoint.Endpoint
	log   *slog.Logger
}

func (l listen) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	req, err := decode()(r)
	if err == nil {
		_, err = l.admit(r.Context(), req)
	}
	if err != nil {
		kithttp.WriteError(w, err)
		return
	}
	body, size, err := l.audio.Open(r.Context(), req.(request).which.Thing, r.PathValue("clip"))
	if err != nil {
		kithttp.WriteError(w, err)
		return
	}
	defer func() { _ = body.Close() }() // it was read
	w.Header().Set("Content-Type", "audio/wav")
	w.Header().Set("Content-Length", strconv.FormatInt(size, 10))
	w.Header().Set("Content-Disposition", `attachment; filename="`+r.PathValue("clip")+`"`)
	if _, err := io.Copy(w, body); err != nil {
		l.log.InfoContext(r.Context(), "recording not sent", logging.Err, err)
	}
}

// filters are the parameters that choose sessions.
var filters = []string{"failed", "step", "version", "language", "days", "limit"}

func decode(allowed ...string) func(*http.Request) (any, error) {
	return func(r *http.Request) (any, error) {
		req, err := parse(r.URL.Query(), allowed...)
		if err == nil && r.PathValue("thing") != "" {
			req.which.Thing, err = kithttp.Thing(r)
		}
		return req, err
	}
}

// parse reads parameters; those that are not allowed are errors, so that a misspelled filter does not choose everything.
func parse(q url.Values, allowed ...string) (request, error) {
	r := request{which: session.Which{Limit: voice.DefaultLimit, Firmware: q.Get("version"), Language: q.Get("language"), Step: session.Step(q.Get("step"))}, days: voice.DefaultDays}
	for key := range q {
		if !slices.Contains(allowed, key) {
			return r, errs.New(errs.Invalid, "%.40q: want %s", key, errs.List(allowed))
		}
	}
	for key, most := range map[string]int{"days": voice.MaxDays, "limit": voice.MaxLimit} {
		if s := q.Get(key); s != "" {
			n, err := strconv.Atoi(s)
			if err != nil || n < 1 || n > most {
				return r, errs.New(errs.Invalid, "%s %.20q: want 1 to %d", key, s, most)
			}
			if key == "days" {
				r.days = n
			} else {
				r.which.Limit = n
			}
		}
	}
	if s := q.Get("failed"); s != "" {
		yes, err := strconv.ParseBool(s)
		if err != nil {
			return r, errs.New(errs.Invalid, "failed %.20q: want true or false", s)
		}
		r.which.Failed = yes
	}
	if q.Get("days") != "" {
		r.which.Since = time.Now().AddDate(0, 0, -r.days)
	}
	return r, nil
}
