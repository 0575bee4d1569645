package voice_test

import (
	"context"
	"io"
	"log/slog"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"kennel/cloud/voice/voice"
	"kennel/infra/blob/blobtest"
	"kennel/infra/errs"
	"kennel/infra/pg/pgtest"
	"kennel/infra/testwait"
	"kennel/infra/thing"
	"kennel/speech"
	"kennel/speech/intent"
	"kennel/speech/recognizer/fixed"
	"kennel/speech/session/sessionpg"
)

// spoken is audio that ends.
type spoken struct{ b []byte }

func (s *spoken) Next() ([]byte, error) {
	if len(s.b) == 0 {
		return nil, io.EOF
	}
	b := s.b
	s.b = nil
	return b, nil
}

// TestWhatAVoiceLeaves (VEC-NLP-07, issue 19, build 5): a spoken request goes through the service, with the bucket and the database behind it. By
// default no audio is left; with the owner's wish it is, until it expires; with skip_das neither audio nor words; words are kept without the robot.
func TestWhatAVoiceLeaves(t *testing.T) {
	pcm, err := os.ReadFile("../../../speech/ogg/testdata/robot.pcm")
	if err != nil {
		t.Fatal(err)
	}
	pool, objects, now := pgtest.New(t), blobtest.New(t), time.Now()
	owner := func(_ context.Context, id thing.ID) (string, error) {
		if id != rex {
			return "", errs.New(errs.NotFound, "no owner")
		}
		return "ada", nil
	}
	store := sessionpg.NewStore(pool)
	audio := voice.NewAudio(store, objects, owner, func() time.Time { return now }, slog.New(slog.DiscardHandler))
	keeper := sessionpg.NewKeeper(pool, func(context.Context, thing.ID) func(time.Time) bool { return func(time.Time) bool { return true } }, slog.New(slog.DiscardHandler))
	ctx, end := context.WithCancel(t.Context())
	done := make(chan error, 2)
	go func() { done <- audio.Run(ctx) }()
	go func() { done <- keeper.Run(ctx) }()
	say := func(words string, r speech.Request) {
		t.Helper()
		of := speech.Config{Recognizer: &fixed.Recognizer{Text: words}, Keeper: keeper, Audio: audio,
			Match: func(context.Context, intent.Listener, string) intent.Match { return intent.Match{} }}
		r.Kind, r.Encoding, r.Session = speech.Intent, speech.PCM, strings.ReplaceAll(words, " ", "-")
		if a, err := speech.New(of).Listen(t.Context(), r, &spoken{slices.Concat(pcm, make([]byte, 32000))}); err != nil || a.Text != words {
			t.Fatalf("%+v, %v", a, err)
		}
		testwait.Until(t, 30*time.Second, "the recording looked at", testwait.Holds(func() bool { return audio.Waiting() == 0 }))
	}
	kept := func() (out []string) {
		t.Helper()
		for o, err := range objects.List(t.Context(), "") {
			if err != nil {
				t.Fatal(err)
			}
			out = append(out, o.Key)
		}
		return out
	}
	say("by default", speech.Request{Thing: rex, SaveAudio: true})
	if got := kept(); len(got) != 0 {
		t.Errorf("by default, the bucket has %v", got)
	}
	if err := audio.Set(t.Context(), rex, "ada", true); err != nil {
		t.Fatal(err)
	}
	now = now.Add(time.Second)
	say("with leave", speech.Request{Thing: rex, SaveAudio: true})
	say("without data", speech.Request{Thing: rex, SaveAudio: true, SkipDAS: true})
	say("a robot that forbids", speech.Request{Thing: rex})
	say("of no owner", speech.Request{Thing: max, SaveAudio: true})
	if got := kept(); len(got) != 1 || !strings.HasPrefix(got[0], "speech/vic-00e20100/") || !strings.Contains(got[0], "withleave") {
		t.Errorf("with leave, the bucket has %v", got)
	}
	now = now.Add(voice.KeepAudio - time.Minute)
	if n, err := audio.Expire(t.Context()); err != nil || n != 0 {
		t.Errorf("a minute before its time: %d deleted, %v", n, err)
	}
	now = now.Add(2 * time.Minute)
	if n, err := audio.Expire(t.Context()); err != nil || n != 1 || len(kept()) != 0 {
		t.Errorf("after its time: %d deleted, %v; the bucket has %v", n, err, kept())
	}
	end()
	for range 2 {
		if err := testwait.For(t, done, "end"); err != nil {
			t.Error(err)
		}
	}
	rows, err := pool.Query(t.Context(), `SELECT words FROM speech_words ORDER BY words`)
	if err != nil {
		t.Fatal(err)
	}
	var words []string
	for rows.Next() {
		var w string
		if err := rows.Scan(&w); err != nil {
			t.Fatal(err)
		}
		words = append(words, w)
	}
	if want := []string{"a robot that forbids", "by default", "of no owner", "with leave"}; !slices.Equal(words, want) {
		t.Errorf("words %q, want %q", words, want)
	}
	var sessions, skipped int
	if err := pool.QueryRow(t.Context(), `SELECT count(*), count(*) FILTER (WHERE skip_das) FROM speech_session`).Scan(&sessions, &skipped); err != nil || sessions != 5 || skipped != 1 {
		t.Errorf("%d sessions, %d with skip_das, %v; want 5 and 1", sessions, skipped, err)
	}
	var columns string
	if err := pool.QueryRow(t.Context(), `SELECT string_agg(column_name, ' ') FROM information_schema.columns WHERE table_name = 'speech_words'`).Scan(&columns); err != nil ||
		strings.Contains(columns, "thing") || strings.Contains(columns, "account") || strings.Contains(columns, "session") || strings.Contains(columns, "owner") {
		t.Errorf("columns of words: %s, %v", columns, err)
	}
}
