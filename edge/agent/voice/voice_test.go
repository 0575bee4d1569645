package voice

import (
	"context"
	"encoding/binary"
	"errors"
	"log/slog"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"kennel/edge/body/monoclock"
	"kennel/edge/core/coreclient"
	"kennel/edge/core/corelink"
	"kennel/edge/mic"
	"kennel/edge/mic/geometry"
	"kennel/edge/mic/miclink"
	"kennel/edge/mic/wakeword"
	"kennel/edge/robot/claim"
	"kennel/infra/api/events"
	"kennel/infra/api/live"
	"kennel/infra/errs"
	"kennel/infra/testwait"
	"kennel/speech/intent"
)

// cloud is a Cloud that answers when it is told to.
type cloud struct {
	asked  chan Request
	audio  chan (<-chan []byte)
	answer chan error // nil: the intent timer
}

func (c *cloud) Listen(ctx context.Context, r Request, audio <-chan []byte) (Reply, error) {
	c.asked <- r
	c.audio <- audio
	select {
	case <-ctx.Done():
		return Reply{}, ctx.Err()
	case err := <-c.answer:
		return Reply{Intent: "set_timer", Params: map[string]string{"time_s": "60"}, Metadata: Metadata{"a minute", 0.5, "LEX"}}, err
	}
}

func (c *cloud) Text(_ context.Context, _ Request, text string) (Reply, error) {
	if text == "" {
		return Reply{}, errs.New(errs.Unavailable, "no recogniser")
	}
	return Reply{Intent: text}, nil
}

// word hears a wake word in its samples once.
type word struct{ at, n uint64 }

func (w *word) Reset() { w.n = 0 }
func (w *word) Feed(s []int16) (wakeword.Hit, bool) {
	w.n += uint64(len(s))
	if w.at == 0 || w.n < w.at {
		return wakeword.Hit{}, false
	}
	h := wakeword.Hit{End: w.at}
	w.at = 0
	return h, true
}

type nobody struct{}

func (nobody) Hello() (corelink.Hello, bool) { return corelink.Hello{}, false }
func (nobody) Send(corelink.Message) error   { return errors.New("robotd is not there") }

// bench is a Voice that runs, and its microphones.
type bench struct {
	*Voice
	far   *cloud
	mics  *miclink.Server
	root  *os.Root
	seq   uint64
	stop  func()
	mu    sync.Mutex
	das   []string
	acted []Intent
}

func newBench(t *testing.T, detector wakeword.Detector) *bench {
	t.Helper()
	return newBenchAt(t, detector, coreclient.New(nobody{}), nil)
}

func newBenchAt(t *testing.T, detector wakeword.Detector, core *coreclient.Client, tap *mic.Tap) *bench {
	t.Helper()
	dir := t.TempDir()
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	b := &bench{root: root, far: &cloud{make(chan Request, 4), make(chan (<-chan []byte), 4), make(chan error, 4)}}
	if b.mics, err = miclink.Listen(root); err != nil {
		t.Fatal(err)
	}
	log := slog.New(slog.DiscardHandler)
	b.Voice = New(Config{Root: root, Dir: dir, Cloud: b.far, Core: core, Tap: tap, Detector: detector, Log: log,
		Settings: func() Settings { return Settings{Language: "en-GB", Timezone: "Europe/London", SkipDAS: true} },
		Map: func(name string, params map[string]string) Intent {
			in := Intent{Name: name}
			for k, v := range params {
				in.Params = map[string]any{k: v}
			}
			return in
		},
		Act: func(_ context.Context, in Intent) Result {
			b.mu.Lock()
			defer b.mu.Unlock()
			b.acted = append(b.acted, in)
			return Result{Intent: in.Name, Done: in.Name == "set_timer", Text: "as you say"}
		},
		Emit: func(e events.Event) {
			b.mu.Lock()
			defer b.mu.Unlock()
			b.das = append(b.das, e.Name+" "+e.S1)
		}})
	ctx, stop := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	wg.Go(func() { _ = b.mics.Run(ctx) })
	wg.Go(func() { _ = b.Run(ctx) })
	b.stop = func() { stop(); wg.Wait() }
	t.Cleanup(func() { b.stop(); _ = root.Close() })
	return b
}

// play gives the microphones frames, each with a value of its own, until the end of the test or of ctx.
func (b *bench) play(t *testing.T, ctx context.Context) {
	ctx, stop := context.WithCancel(ctx)
	var wg sync.WaitGroup
	wg.Go(func() {
		tick := time.NewTicker(geometry.Samples * time.Second / geometry.Rate)
		defer tick.Stop()
		for ; ctx.Err() == nil; <-tick.C {
			b.seq++
			var f geometry.Frame
			for i := range f {
				f[i] = geometry.Idle + int16(b.seq%8)
			}
			b.mics.Tap(uint32(b.seq), monoclock.Now(), &f)
		}
	})
	t.Cleanup(func() { stop(); wg.Wait() })
}

func (b *bench) awaitEars(t *testing.T) {
	t.Helper()
	testwait.Until(t, testwait.Long, "the microphones", func() error {
		if b.conditions().Deaf {
			return errors.New("deaf")
		}
		return nil
	})
}

// until returns the words of the events after number seq, up to the n-th result.
func (b *bench) until(t *testing.T, seq uint64, n int) (out []string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), testwait.Long)
	defer cancel()
	for ctx.Err() == nil {
		all, _ := b.Since(ctx, seq)
		for _, e := range all {
			seq = e.Seq
			out = append(out, e.Words())
			if e.Result != nil {
				if n--; n == 0 {
					return out
				}
			}
		}
	}
	t.Fatalf("%d results are missing after %q", n, out)
	return nil
}

func press(b *bench, gesture string) {
	b.Handle(&corelink.Event{Name: "robot.button", AtUS: monoclock.Now().Microseconds(), Texts: []string{gesture}})
}

const begun = "WakeWordBegin, StimulationInfo ReactToTriggerWord, "

// TestVoice: a press sends what was said since shortly before it, in pieces of 60 ms, and the answer ends in the inbox (VEC-INT-12, VEC-NLP-01).
func TestVoice(t *testing.T) {
	b := newBench(t, nil)
	b.play(t, t.Context())
	b.awaitEars(t)
	press(b, "single")
	r := testwait.For(t, b.far.asked, "a session")
	if r.Session == "" || r.Language != "en-GB" || r.Timezone != "Europe/London" || !r.SkipDAS || r.Question {
		t.Errorf("%+v", r)
	}
	audio := testwait.For(t, b.far.audio, "its sound")
	for range 6 {
		if p := testwait.For(t, audio, "a piece"); len(p) != 2*pieceSamples || binary.LittleEndian.Uint16(p) == geometry.Idle {
			t.Fatalf("a piece of %d bytes", len(p))
		}
	}
	press(b, "single") // it listens already
	b.until(t, 2, 1)
	b.far.answer <- nil
	want := begun + "result busy: I am listening already, " +
		`WakeWordEnd intent_heard=true {"intent":"set_timer","params":{"time_s":"60"}}, result set_timer : as you say`
	if got := strings.Join(b.until(t, 0, 2), ", "); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	all, last := b.Since(t.Context(), 4)
	if m := all[len(all)-1].Result.Metadata; last != 5 || m != "text: a minute  confidence: 0.500000  handler: LEX" {
		t.Errorf("%d, metadata %q", last, m)
	}
	// The cloud fails, then a program has control, then the microphones are switched off, which outlasts a restart.
	press(b, "single")
	testwait.For(t, b.far.asked, "a session")
	b.far.answer <- errs.New(errs.Unavailable, "no recogniser")
	got := strings.Join(b.until(t, 5, 1), ", ")
	b.Handle(&corelink.Motion{Motion: live.Motion{Owners: []live.Owner{{Device: "wheelL", Program: "sdk", Priority: int(claim.Program)}, {Device: "led", Program: "agentd", Priority: 20}}}})
	press(b, "single")
	testwait.For(t, b.far.asked, "a session")
	b.far.answer <- nil
	got += "\n" + strings.Join(b.until(t, 10, 1), ", ")
	b.Handle(&corelink.Motion{})
	press(b, "single")
	testwait.For(t, b.far.asked, "a session")
	press(b, "mute")
	got += "\n" + strings.Join(b.until(t, 15, 1), ", ")
	press(b, "single")
	got += "\n" + strings.Join(b.until(t, 20, 1), ", ")
	want = begun + "WakeWordEnd intent_heard=false , StimulationInfo NoValidVoiceIntent, result no_answer: I cannot understand speech now: the cloud does not answer\n" +
		begun + `WakeWordEnd intent_heard=true , UserIntent set_timer {"time_s":"60"}, result set_timer reserved: a program controls me and got this` + "\n" +
		begun + "WakeWordEnd intent_heard=false , StimulationInfo NoValidVoiceIntent, result muted: my microphones are switched off\n" +
		"result muted: my microphones are switched off"
	if got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if again := New(Config{Root: b.root}); !again.conditions().Muted {
		t.Error("it listens after a restart")
	}
	press(b, "mute")
	testwait.Until(t, testwait.Long, "the file is gone", func() error {
		if _, err := b.root.Stat(mutedFile); err == nil {
			return errors.New("it is there")
		}
		return nil
	})
	b.awaitEars(t)
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.acted) != 1 || !slices.Contains(b.das, "robot.cloud_response_failed speech_no_answer") || !slices.Contains(b.das, "behavior.trigger_word.dropped muted") {
		t.Errorf("acted on %v; %v", b.acted, b.das)
	}
}

// TestBeforeTheCall: the sound that a session begins with came after the call, as far as it is kept.
func TestBeforeTheCall(t *testing.T) {
	l := &loop{Voice: &Voice{}}
	for i := range 300 {
		l.tape.put(chunkAt(i))
	}
	got := l.tape.since(chunkAt(289).At)
	if len(got) != 10*160 || got[0] != 290 || got[len(got)-1] != 299 {
		t.Errorf("%d samples, from %d to %d", len(got), got[0], got[len(got)-1])
	}
	if got = l.tape.since(0); len(got) != tapeChunks*160 || got[0] != 300-tapeChunks {
		t.Errorf("%d samples from %d", len(got), got[0])
	}
	l.tape.erase()
	if got = l.tape.since(0); len(got) != 0 || l.tape.chunks[5].Samples[0] != 0 {
		t.Errorf("%d samples are left", len(got))
	}
}

// chunkAt is chunk i, full of its number.
func chunkAt(i int) *mic.Chunk {
	c := &mic.Chunk{At: time.Duration(i) * 10240 * time.Microsecond}
	for k := range c.Samples {
		c.Samples[k] = int16(i)
	}
	return c
}

// TestSlowNetwork: a session that takes its sound only at the deadline finds all of it, from before the call on.
func TestSlowNetwork(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	far := &cloud{make(chan Request, 1), make(chan (<-chan []byte), 1), make(chan error)}
	root, err := os.OpenRoot(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	l := &loop{Voice: &Voice{cfg: Config{Root: root, Cloud: far, Settings: func() Settings { return Settings{} }}}, ctx: ctx, answers: make(chan answer, 1)}
	defer l.wg.Wait()
	defer stop()
	n := 0
	for ; n < tapeChunks; n++ {
		l.tape.put(chunkAt(n + 1))
	}
	l.begin(open{session: 1})
	audio := testwait.For(t, far.audio, "a session")
	for ; chunkAt(n).At < chunkAt(tapeChunks).At+Deadline; n++ {
		l.hear(chunkAt(n + 1))
	}
	next := 0
	for len(audio) > 0 {
		for p := <-audio; len(p) > 0; p, next = p[2:], next+1 {
			if got, want := int(binary.LittleEndian.Uint16(p)), 1+next/mic.ChunkSamples; got != want {
				t.Fatalf("sample %d is of chunk %d, want %d", next, got, want)
			}
		}
	}
	if left := n*mic.ChunkSamples - next; left >= pieceSamples {
		t.Errorf("%d samples are missing", left)
	}
}

// TestWakeWord: the detector calls, a little before the end of the word, and not while the robot listens.
func TestWakeWord(t *testing.T) {
	b := newBench(t, &word{at: 1600})
	b.play(t, t.Context())
	testwait.For(t, b.far.asked, "a session")
	b.stop()
	if got := strings.Join(b.until(t, 0, 1), ", "); got != begun+"WakeWordEnd intent_heard=false , StimulationInfo NoValidVoiceIntent, result stopping: I am being switched off" {
		t.Error(got)
	}
	if want := []string{"wakeword.triggered wake_word", "mic_data_system.speech_trigger_recognized ", "behavior.voice_command.dropped stopping"}; !slices.Equal(b.das, want) {
		t.Errorf("%q, want %q", b.das, want)
	}
}

// TestNoMicrophones: a robot that hears nothing says so, at once and when they end; text and intents need none (VEC-INT-18).
func TestNoMicrophones(t *testing.T) {
	b := newBench(t, nil)
	b.Listen()
	if got := b.until(t, 0, 1); got[0] != "result no_microphones: I cannot hear: my microphones give no sound" {
		t.Error(got)
	}
	for text, want := range map[string]string{"": "no_answer I cannot understand speech now: the cloud does not answer", "set_timer": " as you say", "dance": " as you say"} {
		if r, err := b.Text(t.Context(), text); err != nil || string(r.Reason)+" "+r.Text != want || r.Done != (text == "set_timer") {
			t.Errorf("%q: %+v, %v, want %s", text, r, err, want)
		}
	}
	if r, err := b.Inject(t.Context(), "set_timer", nil); err != nil || !r.Done {
		t.Errorf("%+v, %v", r, err)
	}
	b.cfg.Map = func(string, map[string]string) Intent { return Intent{Name: unmatched} }
	if r, err := b.Inject(t.Context(), "intent_made_up", nil); errs.KindOf(err) != errs.NotFound {
		t.Errorf("%+v, %v", r, err)
	}
}

// TestResponse: an intent that the robot's file answers reaches the one who acts as the file says, and the mood that it is comes before the result, for
// programs and for the rest of agentd (VEC-INT-03).
func TestResponse(t *testing.T) {
	b := newBench(t, nil)
	b.cfg.Map = func(name string, _ map[string]string) Intent {
		return Intent{Name: name, Response: &intent.Response{AnimGroup: "GreetingHello"}}
	}
	b.cfg.Act = func(_ context.Context, in Intent) Result {
		return Result{Intent: in.Name, Done: true, Text: in.Response.AnimGroup, Emotion: "Amused"}
	}
	var told []string
	b.cfg.Told = func(e Event) { told = append(told, e.Words()) } // before the result, for which the test waits
	if r, err := b.Inject(t.Context(), "hello", nil); err != nil || !r.Done || r.Text != "GreetingHello" {
		t.Errorf("%+v, %v", r, err)
	}
	want := []string{"StimulationInfo Amused", "result hello : GreetingHello"}
	if !slices.Equal(told, want) {
		t.Errorf("told %q, want %q", told, want)
	}
	if got := b.until(t, 0, 1); !slices.Equal(got, want) {
		t.Errorf("programs heard %q, want %q", got, want)
	}
}

// TestNoToken: a cloud that does not know the robot is told as such, with the time, and shown like any failure (VEC-TOK-07).
func TestNoToken(t *testing.T) {
	b := newBench(t, nil)
	b.play(t, t.Context())
	b.awaitEars(t)
	last := uint64(0)
	for i, err := range []error{errs.New(errs.Unauthenticated, "no token"), errs.New(errs.Denied, "no owner"), errs.New(errs.Internal, "broken")} {
		before := time.Now().Unix()
		press(b, "single")
		testwait.For(t, b.far.asked, "a session")
		b.far.answer <- err
		got := strings.Join(b.until(t, last, 1), ", ")
		want := begun + "WakeWordEnd intent_heard=false , StimulationInfo NoValidVoiceIntent, "
		if i == 2 {
			want += "result no_answer: " + Offline.Words()
		} else {
			want += "CloudIntent error Token, result no_token: " + NoToken.Words()
		}
		if got != want {
			t.Errorf("%v:\n got %s\nwant %s", err, got, want)
		}
		all, newest := b.Since(t.Context(), last)
		last = newest
		for _, e := range all {
			if e.CloudIntent != nil && (e.CloudIntent.Time < before || e.CloudIntent.Time > time.Now().Unix()) {
				t.Errorf("time %d, want at least %d", e.CloudIntent.Time, before)
			}
		}
	}
}

// TestFeed: a program that looks late gets the newest events, and one that knows more than there is hears so.
func TestFeed(t *testing.T) {
	f := newFeed()
	for range kept + 3 {
		f.tell(Event{})
	}
	all, last := f.since(t.Context(), 0)
	if len(all) != kept || all[0].Seq != 4 || last != kept+3 || all[0].At.IsZero() || all[0].MonoUS == 0 {
		t.Errorf("%d events from %d, last %d", len(all), all[0].Seq, last)
	}
	if all, last = f.since(t.Context(), 9999); len(all) != 0 || last != kept+3 {
		t.Errorf("%d events, last %d", len(all), last)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if all, _ = f.since(ctx, last); len(all) != 0 {
		t.Errorf("%d events", len(all))
	}
}

// TestTap: programs hear the microphones while they are on, and a light shows it; who switches the microphones off switches them off for programs too, which hear why.
func TestTap(t *testing.T) {
	c := &robotd{asked: make(chan string, 16)}
	c.client = coreclient.New(c)
	c.client.Handle(&corelink.Hello{})
	tap := &mic.Tap{}
	b := newBenchAt(t, nil, c.client, tap)
	b.play(t, t.Context())
	l, end := tap.Listen()
	defer end()
	heard := func() {
		t.Helper()
		testwait.For(t, l.Chunks, "a chunk")
	}
	heard()
	if got := testwait.For(t, c.asked, "the light"); !strings.HasPrefix(got, "claim ") {
		t.Errorf("asked for %q, want the lights", got)
	}
	press(b, "mute")
	testwait.Until(t, testwait.Long, "the microphones to be off", testwait.Holds(func() bool { return tap.Why() != "" }))
	if len(l.Chunks) > 0 || !strings.Contains(tap.Why(), "switched off") {
		t.Errorf("%d chunks, %q", len(l.Chunks), tap.Why())
	}
	press(b, "mute")
	heard()
}
