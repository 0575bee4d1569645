package voice

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
)

// short is an effect as the table writes it.
func short(e effect) string {
	switch e := e.(type) {
	case open:
		return strings.TrimSuffix(fmt.Sprint("open ", e.session, " ", e.question), " false")
	case shut:
		return fmt.Sprint("shut ", e.session)
	case act:
		return "act " + text(e.Intent)
	case count:
		return strings.Join(strings.Fields(fmt.Sprint("das ", e.Name, " ", e.S1)), " ")
	case tell:
		switch {
		case e.WakeWord != nil && e.WakeWord.Begin != nil:
			return "WakeWordBegin"
		case e.WakeWord != nil:
			return fmt.Sprintf("WakeWordEnd %v %s", e.WakeWord.End.Heard, e.WakeWord.End.JSON)
		case e.Stimulation != nil:
			return "StimulationInfo " + e.Stimulation.Emotions[0]
		case e.UserIntent != nil:
			return fmt.Sprintf("UserIntent %d %s", *e.UserIntent.ID, e.UserIntent.JSON)
		case e.CloudIntent != nil:
			return "CloudIntent " + text(e.CloudIntent)
		case e.Result != nil:
			return "result " + string(e.Result.Reason)
		}
	}
	return fmt.Sprintf("%T", e)
}

var (
	begins = []string{"open 1", "WakeWordBegin", "StimulationInfo ReactToTriggerWord", "das wakeword.triggered button"}
	timer  = Intent{Name: "set_timer", ID: new(uint32(38)), Params: map[string]any{"time_s": 60}}
)

// none follows a session that ended without an intent, because of why.
func none(why Reason) []string {
	return []string{"shut 1", "WakeWordEnd false ", "StimulationInfo NoValidVoiceIntent", "das behavior.voice_command.dropped " + string(why), "result " + string(why)}
}

// failed is the same where the cloud is why.
func failed(why Reason) []string {
	return slices.Insert(none(why), 4, "das robot.cloud_response_failed speech_"+string(why))
}

// TestOrder is VEC-INT-12, VEC-WAK-05, VEC-WAK-06, VEC-NLP-09: every order in which a call, an answer and what comes between may happen.
func TestOrder(t *testing.T) {
	start := time.Unix(1_700_000_000, 0)
	dropped := func(why Reason) []string {
		return []string{"das behavior.trigger_word.dropped " + string(why), "result " + string(why)}
	}
	acts := []string{"shut 1", `WakeWordEnd true {"intent":"set_timer","params":{"time_s":60}}`, `act {"intent":"set_timer","params":{"time_s":60}}`}
	for name, tc := range map[string]struct {
		do   func(m *machine) []effect
		want []string
	}{
		"understood": {func(m *machine) []effect { return append(m.call(start, Button), m.heard(start, 1, timer)...) }, slices.Concat(begins, acts)},
		"by the wake word": {func(m *machine) []effect { return m.call(start, WakeWord) },
			[]string{"open 1", "WakeWordBegin", "StimulationInfo ReactToTriggerWord", "das wakeword.triggered wake_word", "das mic_data_system.speech_trigger_recognized"}},
		"control is reserved": {func(m *machine) []effect {
			return slices.Concat(m.call(start, Button), m.set(Conditions{Reserved: true}), m.heard(start, 1, timer))
		}, slices.Concat(begins, []string{"shut 1", "WakeWordEnd true ", `UserIntent 38 {"time_s":60}`, "das behavior.voice_command.dropped reserved", "result reserved"})},
		"control was reserved": {func(m *machine) []effect {
			return slices.Concat(m.set(Conditions{Reserved: true}), m.call(start, Button), m.set(Conditions{}), m.heard(start, 1, timer))
		}, slices.Concat(begins, acts)},
		"reserved, and nothing understood": {func(m *machine) []effect {
			return slices.Concat(m.set(Conditions{Reserved: true}), m.call(start, Button), m.heard(start, 1, Intent{Name: unmatched}))
		}, slices.Concat(begins, none(Unmatched))},
		"no intent": {func(m *machine) []effect {
			return append(m.call(start, Button), m.heard(start, 1, Intent{Name: unmatched})...)
		}, slices.Concat(begins, none(Unmatched))},
		"silence": {func(m *machine) []effect {
			return append(m.call(start, Button), m.heard(start, 1, Intent{Name: silence})...)
		}, slices.Concat(begins, none(Silent))},
		"the cloud dies": {func(m *machine) []effect { return append(m.call(start, Button), m.broke(1, Offline)...) }, slices.Concat(begins, failed(Offline))},
		"no token (VEC-TOK-07)": {func(m *machine) []effect { return append(m.call(start, Button), m.broke(1, NoToken)...) },
			slices.Concat(begins, slices.Insert(failed(NoToken), 4, `CloudIntent {"type":"error","error":"Token","time":0}`))},
		"just in time": {func(m *machine) []effect { return append(m.call(start, Button), m.tick(start.Add(Deadline-1))...) }, begins},
		"too late":     {func(m *machine) []effect { return append(m.call(start, Button), m.tick(start.Add(Deadline))...) }, slices.Concat(begins, failed(Slow))},
		"an answer after all": {func(m *machine) []effect {
			return slices.Concat(m.call(start, Button), m.tick(start.Add(Deadline)), m.heard(start, 1, timer))
		}, slices.Concat(begins, failed(Slow))},
		"two answers": {func(m *machine) []effect {
			return slices.Concat(m.call(start, Button), m.heard(start, 1, timer), m.heard(start, 1, timer))
		}, slices.Concat(begins, acts)},
		"an answer, and then the cloud dies": {func(m *machine) []effect {
			return slices.Concat(m.call(start, Button), m.heard(start, 1, timer), m.broke(1, Offline))
		},
			slices.Concat(begins, acts)},
		"the answer to the call before": {func(m *machine) []effect {
			return slices.Concat(m.call(start, Button), m.broke(1, Offline), m.call(start, Button), m.heard(start, 1, timer))
		}, slices.Concat(begins, failed(Offline), []string{"open 2"}, begins[1:])},
		"called while it listens": {func(m *machine) []effect {
			return slices.Concat(m.call(start, Button), m.call(start, WakeWord), m.heard(start, 1, timer))
		},
			slices.Concat(begins, dropped(Listening), acts)},
		"muted":                  {func(m *machine) []effect { return append(m.set(Conditions{Muted: true}), m.call(start, Button)...) }, dropped(Muted)},
		"muted while it listens": {func(m *machine) []effect { return append(m.call(start, Button), m.set(Conditions{Muted: true})...) }, slices.Concat(begins, none(Muted))},
		"muted, and then the answer": {func(m *machine) []effect {
			return slices.Concat(m.call(start, Button), m.set(Conditions{Muted: true}), m.heard(start, 1, timer))
		}, slices.Concat(begins, none(Muted))},
		"lowest power": {func(m *machine) []effect {
			return append(m.set(Conditions{LowPower: true}), m.call(start, WakeWord)...)
		}, dropped(LowPower)},
		"lowest power while it speaks": {func(m *machine) []effect { return append(m.call(start, Button), m.set(Conditions{LowPower: true})...) }, slices.Concat(begins, none(LowPower))},
		"no microphones":               {func(m *machine) []effect { return append(m.set(Conditions{Deaf: true}), m.call(start, Button)...) }, dropped(Deaf)},
		"microphones end":              {func(m *machine) []effect { return append(m.call(start, Button), m.set(Conditions{Deaf: true})...) }, slices.Concat(begins, none(Deaf))},
		"the button is Alexa's":        {func(m *machine) []effect { return append(m.set(Conditions{Alexa: true}), m.call(start, Button)...) }, dropped(NoAlexa)},
		"the wake word never is": {func(m *machine) []effect {
			return append(m.set(Conditions{Alexa: true}), m.call(start, WakeWord)[:1]...)
		}, begins[:1]},
		"shutdown":                {func(m *machine) []effect { return slices.Concat(m.call(start, Button), m.stop(), m.stop()) }, slices.Concat(begins, none(Stopping))},
		"shutdown of an idle one": {func(m *machine) []effect { return append(m.stop(), m.tick(start)...) }, nil},
		"a question": {func(m *machine) []effect {
			return slices.Concat(m.call(start, Button), m.heard(start, 1, Intent{Name: question}), m.heard(start, 2, Intent{Name: "knowledge_response"}))
		}, slices.Concat(begins, []string{"shut 1", `WakeWordEnd true {"intent":"knowledge_question"}`, "result ", "open 2 true", "shut 2", `act {"intent":"knowledge_response"}`})},
		"a question that is not asked": {func(m *machine) []effect {
			return slices.Concat(m.call(start, Button), m.heard(start, 1, Intent{Name: question}), m.tick(start.Add(Deadline)))
		}, slices.Concat(begins, []string{"shut 1", `WakeWordEnd true {"intent":"knowledge_question"}`, "result ", "open 2 true", "shut 2"}, failed(Slow)[2:])},
		"a question for a program": {func(m *machine) []effect {
			return slices.Concat(m.call(start, Button), m.set(Conditions{Reserved: true}), m.heard(start, 1, Intent{Name: question, ID: new(uint32(27))}))
		}, slices.Concat(begins, []string{"shut 1", "WakeWordEnd true ", "UserIntent 27 ", "das behavior.voice_command.dropped reserved", "result reserved"})},
		"unmuted": {func(m *machine) []effect {
			return slices.Concat(m.set(Conditions{Muted: true}), m.set(Conditions{}), m.call(start, Button))
		}, begins},
		"typed": {func(m *machine) []effect { return m.typed(start, timer, "") }, acts[2:]},
		"typed, and reserved": {func(m *machine) []effect {
			return append(m.set(Conditions{Reserved: true}), m.typed(start, timer, "")...)
		}, []string{`UserIntent 38 {"time_s":60}`, "das behavior.voice_command.dropped reserved", "result reserved"}},
		"typed, no cloud": {func(m *machine) []effect { return m.typed(start, Intent{}, Offline) }, failed(Offline)[2:]},
		"typed while it listens": {func(m *machine) []effect {
			return slices.Concat(m.call(start, Button), m.typed(start, timer, ""), m.heard(start, 1, timer))
		},
			slices.Concat(begins, acts[2:], acts)},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, e := range tc.do(new(machine)) {
				got = append(got, short(e))
			}
			if !slices.Equal(got, tc.want) {
				t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(tc.want, "\n"))
			}
		})
	}
}

// TestEveryOrder walks all orders of up to five events, and checks what always holds: a session that opens shuts once, each WakeWordBegin has one
// WakeWordEnd, nothing is done by a robot that is reserved, and a robot at rest hears no deadline.
func TestEveryOrder(t *testing.T) {
	start := time.Unix(1_700_000_000, 0)
	moves := []func(m *machine) []effect{
		func(m *machine) []effect { return m.call(start, Button) },
		func(m *machine) []effect { return m.heard(start, m.last, timer) },
		func(m *machine) []effect { return m.heard(start, m.last, Intent{Name: silence}) },
		func(m *machine) []effect { return m.broke(m.last, Offline) },
		func(m *machine) []effect { return m.tick(start.Add(Deadline)) },
		func(m *machine) []effect { return m.set(Conditions{Muted: true}) },
		func(m *machine) []effect { return m.set(Conditions{Reserved: true}) },
		func(m *machine) []effect { return m.set(Conditions{}) },
		func(m *machine) []effect { return m.stop() },
	}
	const deep = 5
	total := 1
	for range deep {
		total *= len(moves)
	}
	for n := range total {
		var m machine
		opened, begun := 0, 0
		for k, left := 0, n; k < deep; k, left = k+1, left/len(moves) {
			for _, e := range moves[left%len(moves)](&m) {
				switch e := e.(type) {
				case open:
					if opened++; opened != 1 {
						t.Fatalf("order %d, step %d: opened twice", n, k)
					}
				case shut:
					if opened--; opened != 0 {
						t.Fatalf("order %d, step %d: shut twice", n, k)
					}
				case act:
					if m.Reserved || m.Muted && k == 0 {
						t.Fatalf("order %d, step %d: acts while reserved", n, k)
					}
				case tell:
					if e.WakeWord != nil && e.WakeWord.Begin != nil {
						begun++
					} else if e.WakeWord != nil {
						begun--
					}
				}
			}
			if begun != opened || opened != min(m.session, 1) {
				t.Fatalf("order %d, step %d: %d sessions, %d wake words, session %d", n, k, opened, begun, m.session)
			}
		}
	}
}

// TestMetadata is VEC-NLP-02 and VEC-NLP-03.
func TestMetadata(t *testing.T) {
	for in, want := range map[string]Metadata{
		"": {},
		"text: set a timer  confidence: 0.500000  handler: LEX":                      {"set a timer", 0.5, "LEX"},
		"text: set a timer confidence: 1 handler: LEX":                               {"set a timer", 1, "LEX"},
		"text: my confidence: low handler: hand  confidence: 0.250000  handler: Q_A": {"my confidence: low handler: hand", 0.25, "Q_A"},
		"text:   confidence: 0.000000  handler: ":                                    {},
	} {
		if got, err := ParseMetadata(in); err != nil || got != want {
			t.Errorf("%q: %+v, %v, want %+v", in, got, err, want)
		}
	}
	for in, want := range map[string]string{
		"words": `want "text: "`, "text: a": `want " handler: "`, "text: a handler: LEX": `want " confidence: " before byte`,
		"text: a confidence: much handler: LEX": `confidence "much": want a number`, "text: a confidence: NaN handler: LEX": "want a number",
	} {
		if got, err := ParseMetadata(in); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %+v, %v, want %s", in, got, err, want)
		}
	}
	if got := (Metadata{"what is a dog", 0.75, "HOUNDIFY"}).String(); got != "text: what is a dog  confidence: 0.750000  handler: HOUNDIFY" {
		t.Error(got)
	}
}

func FuzzMetadata(f *testing.F) {
	f.Add("text: set a timer  confidence: 0.500000  handler: LEX")
	f.Add("text: a confidence: 1 handler: b confidence: 2 handler: c")
	f.Fuzz(func(t *testing.T, s string) {
		m, err := ParseMetadata(s)
		if err != nil {
			return
		}
		again, err := ParseMetadata(m.String())
		if d := again.Confidence - m.Confidence; err != nil || d > 1e-6 || d < -1e-6 {
			t.Fatalf("%q: %+v, then %q: %+v, %v", s, m, m.String(), again, err)
		}
	})
}

// TestPatience: a session without a final answer ends after 9 s, as on the original (VEC-NLP-01, peer facts section 2).
func TestPatience(t *testing.T) {
	if Deadline != 9*time.Second {
		t.Errorf("a session ends after %v, want 9 s", Deadline)
	}
}
