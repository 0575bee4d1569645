// Package voiceapi is package voice over HTTP and as pages of the console.
package voiceapi

import (
	"context"
	"io"
	"log/slog"
	"net/http"
	"slices"
	"strconv"
	"time"

	"kennel/cloud/voice/customintent"
	"kennel/cloud/voice/voice"
	"kennel/infra/auth"
	"kennel/infra/errs"
	"kennel/infra/kit/kithttp"
	"kennel/infra/logging"
	"kennel/infra/op"
	"kennel/infra/thing"
	"kennel/speech"
	"kennel/speech/session"
)

// AuditAudio is the action in the audit log of an owner who wants audio kept, or no longer.
const AuditAudio = "voice.audio"

// Config holds what the operations need.
type Config struct {
	Voice *voice.Service
	Audio *voice.Audio
	// Customs are the intents of the operators' own.
	Customs *customintent.Service
	// Speech returns the parts of the speech service; Unavailable if there is none.
	Speech func() (speech.Config, error)
	Known  func(ctx context.Context, id thing.ID) error
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

// Keep is the body of a change of an owner's wish.
type Keep struct {
	Keep bool `json:"keep"`
}

type (
	days struct {
		Days int `query:"days" about:"Number of days, including today." min:"1" max:"90" default:"7"`
	}
	limit struct {
		Limit int `query:"limit" about:"Maximum number of results." min:"1" max:"500" default:"50"`
	}
	sessions struct {
		Failed   bool   `query:"failed" about:"Only failed requests." enum:"true,false"`
		Step     string `query:"step" about:"Only requests that failed at this step." enum:"audio,endpoint,recognize,match,answer"`
		Version  string `query:"version" about:"Only requests of robots with this version."`
		Language string `query:"language" about:"Only requests in this language, such as en-US."`
		Days     int    `query:"days" about:"Number of days, including today." min:"1" max:"90"`
		limit
	}
	phrases struct {
		days
		limit
	}
	robot struct {
		Thing thing.ID `path:"thing"`
	}
	ofRobot struct {
		robot
		limit
	}
	keeping struct {
		robot
		Keep Keep `body:""`
	}
	recording struct {
		robot
		Clip string `path:"clip"`
	}
	trial struct {
		Language string `query:"language" about:"Language of the recording, such as en-US."`
		Kind     string `query:"kind" about:"Kind of request." enum:"intent,knowledge,graph" default:"intent"`
		File     op.Raw `body:""`
	}
)

// which returns the sessions that are asked for.
func (r sessions) which() session.Which {
	w := session.Which{Limit: r.Limit, Firmware: r.Version, Language: r.Language, Step: session.Step(r.Step), Failed: r.Failed}
	if r.Days > 0 {
		w.Since = time.Now().AddDate(0, 0, -r.Days)
	}
	return w
}

// shownSessions is how kennelctl shows requests that people spoke.
const shownSessions = "TIME=.at; THING; INTENT; FAILED AT=.failed; LANGUAGE; VERSION=.firmware; SPOKEN={{.audio_ms}} ms; ANSWERED AFTER={{.took_ms}} ms; REASON=.why"

// shownAudio is how kennelctl shows a wish.
const shownAudio = "kept={{if .keep}}for {{.keep_days}} days{{else}}no{{end}}\nrecordings: RECORDING=.name; HEARD=.at; SIZE=bytes .size"

// Operations returns the operations on voice.
func Operations(c Config) op.List {
	staff := func(route, summary string) op.Spec {
		return op.Spec{Route: route, Tag: "Voice", Summary: summary, Roles: auth.Staff, Strict: true}
	}
	mine := func(route, summary string) op.Spec {
		return op.Spec{Route: route, Tag: "Own robots", Summary: summary, Roles: []auth.Role{auth.Owner}, Own: true, Strict: true}
	}
	robots := staff("GET /v1/things/{thing}/voice", "List speech requests to a robot and their results, the latest first, without the words.").With(
		op.Command{Use: "voice sessions THING -limit=50", Short: "List speech requests to one or all robots, the latest first, without the words", Example: "voice sessions\nvoice sessions vic:00e20100\nvoice sessions -step recognize -version 2.0.1", Table: shownSessions})
	robots.Own = true
	try := op.Spec{Route: "POST /v1/speech/try", Tag: "Voice", Roles: auth.Changers, Quiet: true, BodyMedia: "application/octet-stream",
		Summary: "Send a recording (WAV or Opus in Ogg, at most 30 s) through speech recognition, and show each step. Nothing is stored."}
	clip := mine("GET /v1/my/robots/{thing}/audio/{clip}", "Download a recording.")
	clip.AnswerMedia = "audio/wav"
	return slices.Concat(customOperations(c), op.List{
		op.New(staff("GET /v1/voice/stats", "Summarise speech requests by version and language.").With(
			op.Command{Use: "voice stats -days=7", Short: "Summarise speech requests by version and language", Example: "voice stats\nvoice stats -days 30", Table: "groups: VERSION=or .firmware `-`; LANGUAGE=or .language `-`; REQUESTS=.sessions; SUCCESS=percent .succeeded .sessions; FAILED AT={{with .failed}}{{counts .}}{{end}}; ANSWERED AFTER={{div .took_ns 1000000}} ms"}),
			func(ctx context.Context, r days) (Stats, error) { return c.Voice.Stats(ctx, r.Days) }),
		op.New(staff("GET /v1/voice/sessions", "List speech requests and their results, the latest first, without the words.").With(
			op.Command{Use: "voice sessions -failed -step -version -language -limit=50", Table: shownSessions}),
			func(ctx context.Context, r sessions) ([]Session, error) { return c.Voice.Sessions(ctx, r.which()) }),
		op.New(staff("GET /v1/voice/unmatched", "List phrases that robots did not understand, the most frequent first, without their speakers.").With(
			op.Command{Use: "voice unmatched -days=7 -limit=50", Short: "List phrases that robots did not understand, the most frequent first", Example: "voice unmatched\nvoice unmatched -days 30 -limit 200", Table: "phrases: PHRASE=.words; LANGUAGE; TIMES\n={{count .rarer `rarer phrase`}} hidden (said fewer than {{.at_least}} times)"}),
			func(ctx context.Context, r phrases) (Unmatched, error) {
				return c.Voice.Unmatched(ctx, r.Days, r.Limit)
			}),
		op.New(robots, func(ctx context.Context, r ofRobot) ([]Session, error) {
			if err := c.Known(ctx, r.Thing); err != nil {
				return nil, err
			}
			since, _ := auth.OwnedSince(ctx)
			return c.Voice.Sessions(ctx, session.Which{Thing: r.Thing, Limit: r.Limit, Since: since})
		}),
		op.New(try, c.try),
		op.New(mine("GET /v1/my/robots/{thing}/audio", "Show whether recordings of what your robot hears are kept, and list them.").With(
			op.Command{Use: "my audio show THING", Short: "List kept recordings", Table: shownAudio}),
			func(ctx context.Context, r robot) (AudioWish, error) { return c.Audio.Wish(ctx, r.Thing) }),
		op.New(mine("PUT /v1/my/robots/{thing}/audio", "Choose whether recordings of what your robot hears are kept. Choosing no deletes all recordings.").With(
			op.Command{Use: "my audio keep THING YES-OR-NO=keep", Short: "Keep recordings for a week (yes), or delete all and keep none (no)", Example: "my audio keep vic:00e20100 no", Table: shownAudio}), func(ctx context.Context, r keeping) (AudioWish, error) {
			if err := c.Audit(ctx, AuditAudio, string(r.Thing), strconv.FormatBool(r.Keep.Keep)); err != nil {
				return AudioWish{}, err
			}
			if err := c.Audio.Set(ctx, r.Thing, auth.CallerFrom(ctx).Account, r.Keep.Keep); err != nil {
				return AudioWish{}, err
			}
			return c.Audio.Wish(ctx, r.Thing)
		}),
		op.New(clip, func(_ context.Context, r recording) (http.Handler, error) { return listen{c.Audio, r, c.Log}, nil }),
	})
}

func (c Config) try(ctx context.Context, t trial) (Trial, error) {
	file, err := io.ReadAll(io.LimitReader(t.File, voice.MaxTry+1))
	if err != nil {
		return Trial{}, errs.New(errs.Invalid, "read the recording: %w", err)
	}
	if len(file) > voice.MaxTry {
		return Trial{}, errs.New(errs.Invalid, "recording of more than %d kB: want at most 30 s", voice.MaxTry>>10)
	}
	parts, err := c.Speech()
	if err != nil {
		return Trial{}, err
	}
	return voice.Try(ctx, parts, file, t.Language, speech.Kind(t.Kind))
}

// listen sends one recording.
type listen struct {
	audio *voice.Audio
	recording
	log *slog.Logger
}

func (l listen) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, size, err := l.audio.Open(r.Context(), l.Thing, l.Clip)
	if err != nil {
		kithttp.WriteError(w, err)
		return
	}
	defer func() { _ = body.Close() }() // it was read
	w.Header().Set("Content-Type", "audio/wav")
	w.Header().Set("Content-Length", strconv.FormatInt(size, 10))
	w.Header().Set("Content-Disposition", `attachment; filename="`+l.Clip+`"`)
	if _, err := io.Copy(w, body); err != nil {
		l.log.InfoContext(r.Context(), "recording not sent", logging.Err, err)
	}
}
