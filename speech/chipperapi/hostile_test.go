package chipperapi_test

import (
	"context"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"kennel/infra/api/chipperpb"
	"kennel/infra/errs"
	"kennel/infra/thing"
	"kennel/speech"
	"kennel/speech/chipperapi"
	"kennel/speech/knowledge/local"
	"kennel/speech/recognizer/fixed"
)

const timer = "intent_clock_settimer_extend"

// heard is a service whose recogniser hears text in everything.
func heard(text string) chipperapi.Config {
	return chipperapi.Config{Speech: speech.New(speech.Config{Recognizer: &fixed.Recognizer{Text: text, Confidence: 0.75}, Match: match, Knowledge: local.New(time.Now)}), Prove: stranger}
}

// TestAnswers: all fields of what robots hear (peer facts, section 6).
func TestAnswers(t *testing.T) {
	const id, command, question = "vic:00e20100", "set a timer for ten minutes", "what is two plus two"
	result := &chipperpb.IntentResult{QueryText: command, Action: timer, IntentConfidence: 0.5, SpeechConfidence: 0.75, Parameters: map[string]string{"timer_duration": "600"},
		AllParametersPresent: true, Service: chipperpb.IntentService_LEX}
	audio := slices.Concat(pcm(t)[:15]...)
	ask := func(text string, first func(c chipperpb.ChipperGrpcClient) (proto.Message, error)) proto.Message {
		t.Helper()
		got, err := first(serveWith(t, heard(text)))
		if err != nil {
			t.Fatal(err)
		}
		return got
	}
	graph := func(c chipperpb.ChipperGrpcClient) (proto.Message, error) {
		st, err := c.StreamingIntentGraph(t.Context())
		if err != nil {
			return nil, err
		}
		return turn(st.Send(&chipperpb.StreamingIntentGraphRequest{Session: "s", DeviceId: id, InputAudio: audio, IntentService: chipperpb.IntentService_LEX, Mode: chipperpb.RobotMode_GAME}), st)
	}
	knowledge := func(c chipperpb.ChipperGrpcClient) (proto.Message, error) {
		st, err := c.StreamingKnowledgeGraph(t.Context())
		if err != nil {
			return nil, err
		}
		return turn(st.Send(&chipperpb.StreamingKnowledgeGraphRequest{Session: "s", DeviceId: id, InputAudio: audio}), st)
	}
	intents := func(only bool) func(c chipperpb.ChipperGrpcClient) (proto.Message, error) {
		return func(c chipperpb.ChipperGrpcClient) (proto.Message, error) {
			st, err := c.StreamingIntent(t.Context())
			if err != nil {
				return nil, err
			}
			return turn(st.Send(&chipperpb.StreamingIntentRequest{Session: "s", DeviceId: id, InputAudio: audio, IntentService: chipperpb.IntentService_LEX, SpeechOnly: only}), st)
		}
	}
	text := func(c chipperpb.ChipperGrpcClient) (proto.Message, error) {
		return c.TextIntent(t.Context(), &chipperpb.TextRequest{Session: "s", DeviceId: id, TextInput: command, IntentService: chipperpb.IntentService_LEX})
	}
	typed := proto.CloneOf(result)
	typed.SpeechConfidence = 0
	unmatched := &chipperpb.IntentResult{QueryText: "gobbledygook", Action: "intent_system_unmatched", SpeechConfidence: 0.75, AllParametersPresent: true, Service: chipperpb.IntentService_LEX}
	for name, tc := range map[string]struct{ got, want proto.Message }{
		"text":      {ask("", text), &chipperpb.IntentResponse{Session: "s", DeviceId: id, IsFinal: true, IntentResult: typed}},
		"intent":    {ask(command, intents(false)), &chipperpb.IntentResponse{Session: "s", DeviceId: id, IsFinal: true, IntentResult: result}},
		"unmatched": {ask("gobbledygook", intents(false)), &chipperpb.IntentResponse{Session: "s", DeviceId: id, IsFinal: true, IntentResult: unmatched}},
		"speech only": {ask(command, intents(true)),
			&chipperpb.IntentResponse{Session: "s", DeviceId: id, IsFinal: true, SpeechResult: &chipperpb.SpeechResult{Transcript: command, IsFinal: true}}},
		"graph, a command": {ask(command, graph), &chipperpb.IntentGraphResponse{Session: "s", DeviceId: id, IsFinal: true, ResponseType: chipperpb.IntentGraphMode_INTENT,
			Mode: chipperpb.RobotMode_GAME, QueryText: command, IntentResult: result}},
		"no result": {ask("gobbledygook", knowledge), &chipperpb.KnowledgeGraphResponse{Session: "s", DeviceId: id, QueryText: "gobbledygook", CommandType: "NoResultCommand"}},
	} {
		if !proto.Equal(tc.got, tc.want) {
			t.Errorf("%s:\n%v, want\n%v", name, tc.got, tc.want)
		}
	}
	k := ask(question, knowledge).(*chipperpb.KnowledgeGraphResponse)
	g := ask(question, graph).(*chipperpb.IntentGraphResponse)
	if k.CommandType != "InformationCommand" || !strings.Contains(k.SpokenText, "4") || g.ResponseType != chipperpb.IntentGraphMode_KNOWLEDGE_GRAPH || g.SpokenText != k.SpokenText || len(g.DomainsUsed) != len(k.DomainsUsed) || g.IntentResult != nil {
		t.Errorf("a question: %v, and of either kind: %v", k, g)
	}
}

// turn ends the robot's side and reads the answer.
func turn[Req, Resp any](sent error, st grpc.BidiStreamingClient[Req, Resp]) (proto.Message, error) {
	err := errors.Join(sent, st.CloseSend())
	if err != nil {
		return nil, err
	}
	got, err := st.Recv()
	if err != nil {
		return nil, err
	}
	_, end := st.Recv()
	if !errors.Is(end, io.EOF) {
		return nil, end
	}
	return any(got).(proto.Message), nil
}

// TestRefusals: a robot that is refused hears why, after its first message (peer facts, section 4).
func TestRefusals(t *testing.T) {
	denied := errs.New(errs.Unauthenticated, "want a certificate")
	for name, tc := range map[string]struct {
		cfg  func(*chipperapi.Config)
		m    *chipperpb.StreamingIntentRequest
		want codes.Code
		says string
	}{
		"too fast":       {func(c *chipperapi.Config) { c.ByAddr = allow(time.Second) }, &chipperpb.StreamingIntentRequest{}, codes.Unavailable, "too many requests from this address"},
		"no certificate": {func(c *chipperapi.Config) { c.Prove = func(context.Context) (thing.ID, error) { return "", denied } }, &chipperpb.StreamingIntentRequest{}, codes.Unauthenticated, "want a certificate"},
		"a thing too fast": {func(c *chipperapi.Config) {
			c.Prove, c.ByThing = func(context.Context) (thing.ID, error) { return "vic:00e20100", nil }, allow(time.Second)
		}, &chipperpb.StreamingIntentRequest{}, codes.Unavailable, "too many requests of this robot"},
		"an unknown encoding": {func(*chipperapi.Config) {}, &chipperpb.StreamingIntentRequest{AudioEncoding: 7}, codes.InvalidArgument, "audio_encoding 7: want 0 (LINEAR_PCM) or 1 (OGG_OPUS)"},
		"garbage for Opus":    {func(*chipperapi.Config) {}, &chipperpb.StreamingIntentRequest{AudioEncoding: 1, InputAudio: make([]byte, 2000)}, codes.InvalidArgument, "want the start of an Ogg page"},
		"recogniser down": {func(c *chipperapi.Config) {
			c.Speech = speech.New(speech.Config{Recognizer: &fixed.Recognizer{OpenErr: io.ErrClosedPipe}, Match: match})
		}, &chipperpb.StreamingIntentRequest{InputAudio: pcm(t)[0]}, codes.Unavailable, "not available"},
	} {
		t.Run(name, func(t *testing.T) {
			cfg := heard("hello")
			tc.cfg(&cfg)
			st, err := serveWith(t, cfg).StreamingIntent(t.Context())
			if err == nil {
				err = st.Send(tc.m)
			}
			if err != nil {
				t.Fatal(err)
			}
			for _, b := range pcm(t)[1:10] {
				_ = st.Send(&chipperpb.StreamingIntentRequest{InputAudio: b}) // the status tells why
			}
			if got, err := st.Recv(); status.Code(err) != tc.want || !strings.Contains(status.Convert(err).Message(), tc.says) {
				t.Errorf("%v, %v; want %v: %s", got, err, tc.want, tc.says)
			}
		})
	}
}
