package voice

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"kennel/infra/api/events"
	"kennel/speech/intent"
)

// Deadline is how long a person waits at most from the wake word to the answer, as original robots do (peer facts, section 1).
const Deadline = 9 * time.Second

// Way is how a person called the robot.
type Way string

// The ways.
const (
	Button   Way = "button"
	WakeWord Way = "wake_word"
	Program  Way = "program" // one on the robot pressed the button
)

// Reason says why the robot did not understand, or did not do it; "": it did. Those of the inbox come beside these.
type Reason string

// The reasons.
const (
	Muted     Reason = "muted"
	LowPower  Reason = "low_power"
	Listening Reason = "busy" // a person speaks to it already
	NoAlexa   Reason = "no_alexa"
	Deaf      Reason = "no_microphones"
	Offline   Reason = "no_answer"      // the cloud cannot be reached, or understands nothing now
	Slow      Reason = "no_answer_soon" // within the deadline
	NoToken   Reason = "no_token"       // the cloud does not let it ask
	Silent    Reason = "silence"
	Unmatched Reason = "unmatched"
	Reserved  Reason = "reserved" // a program on the robot has control, and got the intent
	Stopping  Reason = "stopping"
)

var words = map[Reason]string{
	Muted: "my microphones are switched off", LowPower: "my battery is too low to listen", Listening: "I am listening already",
	NoAlexa: "my button is set to call Alexa, which I do not have", Deaf: "I cannot hear: my microphones give no sound",
	Offline: "I cannot understand speech now: the cloud does not answer", Slow: "I cannot understand speech now: the answer took too long",
	NoToken: "I cannot understand speech: the cloud does not know me; my owner has to claim me again",
	Silent:  "I heard nothing", Unmatched: "I did not understand that", Reserved: "a program controls me and got this", Stopping: "I am being switched off",
}

// Words returns r for people.
func (r Reason) Words() string { return words[r] }

// Intents that mean more to the machine than others (annex D).
const (
	silence   = "silence"
	unmatched = "unmatched_intent"
	question  = "knowledge_question" // the next sentence is one (VEC-NLP-06)
)

// Intent is a person's wish, by the robot's own names.
type Intent struct {
	Name   string         `json:"intent"`
	ID     *uint32        `json:"-"` // in the SDK; nil: it has none (VEC-INT-10)
	Params map[string]any `json:"params,omitempty"`
	// Metadata is how the cloud understood it (VEC-NLP-02); "": it did not say.
	Metadata string           `json:"-"`
	Response *intent.Response `json:"-"` // the robot's file says what to do (VEC-INT-03); nil: it does not
}

// Event is one that programs on the robot hear. One of the pointers is set; all but the last are as in the SDK or the original's developer tool.
type Event struct {
	Seq         uint64       `json:"seq"`
	At          time.Time    `json:"at"`
	MonoUS      int64        `json:"mono_us"` // CLOCK_MONOTONIC, as the frames of the microphones have
	WakeWord    *Word        `json:"wake_word,omitempty"`
	Stimulation *Stimulation `json:"stimulation_info,omitempty"`
	UserIntent  *UserIntent  `json:"user_intent,omitempty"`
	CloudIntent *CloudIntent `json:"cloud_intent,omitempty"`
	Result      *Result      `json:"result,omitempty"`
}

// CloudIntent tells developers about the session with the cloud.
type CloudIntent struct {
	Type  string `json:"type"`            // Failed or Recorded
	Error string `json:"error,omitempty"` // of Failed
	File  string `json:"file,omitempty"`  // of Recorded: its name in the file system of the original robot
	Time  int64  `json:"time"`            // seconds since 1970
}

// The types of CloudIntent.
const (
	Failed   = "error"     // with the error "Token": the robot has none that the cloud takes (VEC-TOK-07)
	Recorded = "debugFile" // the sound of a session is on disk (VEC-NLP-10)
)

// Word is the SDK's WakeWord.
type Word struct {
	Begin *struct{}    `json:"wake_word_begin,omitempty"`
	End   *WakeWordEnd `json:"wake_word_end,omitempty"`
}

// WakeWordEnd says whether an intent was heard, and which unless control is reserved.
type WakeWordEnd struct {
	Heard bool   `json:"intent_heard"`
	JSON  string `json:"intent_json"`
}

// Stimulation names what stirred the robot.
type Stimulation struct {
	Emotions []string `json:"emotion_events"`
}

// UserIntent is an intent for the program that has control.
type UserIntent struct {
	ID   *uint32 `json:"intent_id,omitempty"`
	Name string  `json:"intent"` // beside the SDK's: not all intents have a number
	JSON string  `json:"json_data"`
}

// Result is our own: what became of it, in words.
type Result struct {
	Intent   string `json:"intent,omitempty"`
	Done     bool   `json:"done"`
	Reason   Reason `json:"reason,omitempty"`
	Text     string `json:"text"`
	Metadata string `json:"metadata,omitempty"` // of the intent
	Emotion  string `json:"-"`                  // an event of the mood that it is, told before it; "": none
}

// Words returns e for people.
func (e *Event) Words() string {
	switch {
	case e.WakeWord != nil && e.WakeWord.Begin != nil:
		return "WakeWordBegin"
	case e.WakeWord != nil:
		return fmt.Sprintf("WakeWordEnd intent_heard=%v %s", e.WakeWord.End.Heard, e.WakeWord.End.JSON)
	case e.Stimulation != nil:
		return "StimulationInfo " + strings.Join(e.Stimulation.Emotions, " ")
	case e.CloudIntent != nil:
		return strings.TrimRight("CloudIntent "+e.CloudIntent.Type+" "+e.CloudIntent.Error+e.CloudIntent.File, " ")
	case e.UserIntent != nil:
		return "UserIntent " + e.UserIntent.Name + " " + e.UserIntent.JSON
	case e.Result != nil:
		return strings.Join(strings.Fields("result "+e.Result.Intent+" "+string(e.Result.Reason)+": "+e.Result.Text), " ")
	}
	return "unknown"
}

// Conditions decide whether the robot may listen and act.
type Conditions struct {
	Muted    bool
	LowPower bool // the battery permits no talk (VEC-PWR-07)
	Deaf     bool // the microphones are not there
	Reserved bool // a program has control
	Alexa    bool // the button calls Alexa
}

// silent says to programs why the microphones give no sound; "": they do.
func (c Conditions) silent() string {
	switch {
	case c.Muted:
		return "the microphones are switched off; a person switches them on by the robot's button"
	case c.LowPower:
		return "the battery is too low to listen; put the robot on its charger"
	case c.Deaf:
		return "the microphones give no sound; try again in a minute"
	}
	return ""
}

// Effects of a step, in their order.
type (
	effect any
	tell   Event
	open   struct { // begin to send audio, and show that
		session  int
		question bool
	}
	shut  struct{ session int } // the end of audio
	act   struct{ Intent }
	count events.Event
)

// machine is the order of things between a person's call and the end of the answer (VEC-INT-12). It does nothing itself: each method returns
// what is to be done. It belongs to one goroutine.
//
//	   call, refused: dropped, and why                     ┌─ Muted, LowPower, Deaf (set)
//	  ┌──┐                                                 ├─ Offline (broke), Slow (tick, after Deadline), Stopping (stop)
//	  │  ▼        call: open, WakeWordBegin                │
//	quiet ───────────────────────────────────► listening ──┴─► shut, WakeWordEnd not heard, Result with the reason ──► quiet
//	  ▲                                        ▲       │
//	  │                    open, for the       │       │ heard: shut, WakeWordEnd
//	  │                    question itself     │       ▼
//	  │                                        └── knowledge_question
//	  └── act (an intent), UserIntent (Reserved), Result (silence, unmatched)
type machine struct {
	Conditions
	session  int // that listens; 0: none
	last     int
	until    time.Time
	question bool // it follows another without a wake word
}

// call is the wake word, or the button in its place (VEC-WAK-06).
func (m *machine) call(now time.Time, way Way) []effect {
	no := m.mayListen()
	switch {
	case no == Muted, no == LowPower:
	case m.session != 0:
		no = Listening
	case way == Button && m.Alexa:
		no = NoAlexa
	}
	if no != "" {
		return []effect{analytics("behavior.trigger_word.dropped", string(no), string(way)), result(Intent{}, no)}
	}
	out := []effect{m.begin(now, false), tell{WakeWord: &Word{Begin: &struct{}{}}}, stimulation("ReactToTriggerWord"), analytics("wakeword.triggered", string(way), "")}
	if way == WakeWord {
		out = append(out, analytics("mic_data_system.speech_trigger_recognized", "", ""))
	}
	return out
}

func (m *machine) begin(now time.Time, question bool) effect {
	m.last++
	m.session, m.until, m.question = m.last, now.Add(Deadline), question
	return open{m.session, question}
}

// heard is the answer to a session.
func (m *machine) heard(now time.Time, session int, in Intent) []effect {
	if session != m.session || session == 0 {
		return nil
	}
	return m.close(now, in, "")
}

// broke is the end of a session without an answer.
func (m *machine) broke(session int, why Reason) []effect {
	if session != m.session || session == 0 {
		return nil
	}
	return m.close(time.Time{}, Intent{}, why)
}

// set changes the conditions; they may end a session.
func (m *machine) set(c Conditions) []effect {
	m.Conditions = c
	if no := m.mayListen(); no != "" && m.session != 0 {
		return m.close(time.Time{}, Intent{}, no)
	}
	return nil
}

// mayListen returns why not; "": the robot may (VEC-WAK-06).
func (m *machine) mayListen() Reason {
	switch {
	case m.Muted:
		return Muted
	case m.LowPower:
		return LowPower
	case m.Deaf:
		return Deaf
	}
	return ""
}

// tick ends a session whose time is over.
func (m *machine) tick(now time.Time) []effect {
	if m.session == 0 || now.Before(m.until) {
		return nil
	}
	return m.close(time.Time{}, Intent{}, Slow)
}

// stop ends a session with the program.
func (m *machine) stop() []effect {
	if m.session == 0 {
		return nil
	}
	return m.close(time.Time{}, Intent{}, Stopping)
}

// close ends the session with an intent, or without one because of why.
func (m *machine) close(now time.Time, in Intent, why Reason) []effect {
	out, called := []effect{shut{m.session}}, !m.question
	m.session = 0
	rest, heard := m.meaning(now, in, why)
	if called {
		end := &WakeWordEnd{Heard: heard}
		if heard && !m.Reserved {
			end.JSON = text(in)
		}
		out = append(out, tell{WakeWord: &Word{End: end}})
	}
	return append(out, rest...)
}

// typed is an intent that came without a wake word.
func (m *machine) typed(now time.Time, in Intent, why Reason) []effect {
	rest, _ := m.meaning(now, in, why)
	return rest
}

// meaning returns what follows the end of the wake word, and whether an intent was heard.
func (m *machine) meaning(now time.Time, in Intent, why Reason) (out []effect, heard bool) {
	switch {
	case why != "":
	case in.Name == silence:
		why = Silent
	case in.Name == unmatched || in.Name == "":
		why = Unmatched
	case m.Reserved:
		params := ""
		if len(in.Params) > 0 {
			params = text(in.Params)
		}
		return []effect{tell{UserIntent: &UserIntent{ID: in.ID, Name: in.Name, JSON: params}}, analytics("behavior.voice_command.dropped", string(Reserved), in.Name), result(in, Reserved)}, true
	case in.Name == question && m.session == 0 && m.mayListen() == "":
		return []effect{tell{Result: &Result{Intent: in.Name, Done: true, Text: "what is it?", Metadata: in.Metadata}}, m.begin(now, true)}, true
	default:
		return []effect{act{in}}, true
	}
	out = []effect{stimulation("NoValidVoiceIntent"), analytics("behavior.voice_command.dropped", string(why), "")}
	if why == NoToken {
		out = append(out, tell{CloudIntent: &CloudIntent{Type: Failed, Error: "Token"}})
	}
	if why == Offline || why == Slow || why == NoToken { // VEC-NLP-09
		failed := analytics("robot.cloud_response_failed", "speech_"+string(why), why.Words()).(count)
		failed.Level = events.Warning
		out = append(out, failed)
	}
	return append(out, result(in, why)), false
}

func stimulation(emotion string) effect {
	return tell{Stimulation: &Stimulation{Emotions: []string{emotion}}}
}

func result(in Intent, why Reason) effect {
	return tell{Result: &Result{Intent: in.Name, Reason: why, Text: why.Words(), Metadata: in.Metadata}}
}

func analytics(name, s1, s2 string) effect {
	return count(events.Event{Source: "agentd", Name: name, S1: s1, S2: s2})
}

// text is v as JSON. Texts and maps of texts always have one.
func text(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		return ""
	}
	return string(b)
}
