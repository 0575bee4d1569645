// Package chipperapi is the published speech service over gRPC (infra/api/chipperpb), for original robots and for our agents. Every stream is read
// once before it is refused: an original robot whose first send fails sees EOF and never reads the status. Without a recogniser, what is spoken is
// answered Unimplemented, with a sentence that the robot logs; typed text and the connection check (VEC-CLD-07) need none.
package chipperapi

import (
	"context"
	"errors"
	"io"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"kennel/infra/api/chipperpb"
	"kennel/infra/errs"
	"kennel/infra/kit/kitgrpc"
	"kennel/infra/thing"
	"kennel/speech"
	"kennel/speech/intent"
)

// NoSpeech is the answer to everything that needs a recogniser in a cloud that has none.
const NoSpeech = "this cloud does not understand speech yet: the robot reached it, and its settings, tokens and uploads work"

// NoResult is the command type of a question without an answer (VEC-NLP-04), Information the one of every other.
const (
	NoResult    = "NoResultCommand"
	Information = "InformationCommand"
)

// Bounds: ours, but for the deadline of a robot, which is 9 s (peer facts, section 1).
const (
	robotTime = 9 * time.Second         // from the start of a stream; the speech service leaves a margin
	firstTime = 5 * time.Second         // how long a stream may take to send its first message
	checkTime = 8500 * time.Millisecond // how long a connection check may take; original robots send for 5.9 s
	maxFrames = 1000                    // in one connection check; original robots send 50
	maxAudio  = 1 << 20                 // bytes in one connection check; original robots send at most 192,000
	maxOpen   = 2000                    // streams at once that wait for their first message
	maxAside  = 500                     // of those that are refused after it
)

// An original robot's connection check; these lengths replace those that a request leaves out.
const (
	usualTotal = 6000 // milliseconds
	usualFrame = 120
)

// The words of a connection check's answer. Robots look for Success.
const (
	statusSuccess = "Success"
	statusError   = "Error"   // the robot stopped sending too early
	statusTimeout = "Timeout" // it was too slow
)

// Limiter paces calls by key. Allow takes one and returns 0, or how long to wait.
type Limiter interface {
	Allow(key string) time.Duration
}

// Service answers what is said; *speech.Service is one.
type Service interface {
	Hears() bool // there is a recogniser
	Listen(ctx context.Context, r speech.Request, audio speech.Audio) (speech.Answer, error)
	Text(ctx context.Context, r speech.Request, text string) (speech.Answer, error)
}

// Config says whom the service serves at one listener.
type Config struct {
	Speech Service
	// Prove returns the robot that the caller of ctx proves to be; "": none. Its error refuses the call.
	Prove func(ctx context.Context) (thing.ID, error)
	// ByAddr paces calls by the address of the robot, ByThing by the robot; nil: it is not paced in this way.
	ByAddr, ByThing Limiter
	Ours            bool // the robots have our agent
}

// Register adds the published service to s.
func Register(s grpc.ServiceRegistrar, cfg Config) {
	chipperpb.RegisterChipperGrpcServer(s, &server{cfg: cfg, open: make(chan struct{}, maxOpen), aside: make(chan struct{}, maxAside)})
}

type server struct {
	chipperpb.UnimplementedChipperGrpcServer
	cfg   Config
	open  chan struct{} // one for each stream that waits for its first message, or makes a connection check
	aside chan struct{} // the same for those that are refused, so that they take no place of others
}

// enter admits the caller of a stream. refused is the answer once its first message was read; err refuses it at once.
func (s *server) enter(ctx context.Context) (id thing.ID, leave func(), refused, err error) {
	places := s.open
	if id, refused = s.admit(ctx); refused != nil {
		places = s.aside
	}
	select {
	case places <- struct{}{}:
		return id, func() { <-places }, refused, nil
	default:
		return "", nil, nil, errs.RetryLater(time.Second, "too many streams at once", nil)
	}
}

func (s *server) TextIntent(ctx context.Context, m *chipperpb.TextRequest) (*chipperpb.IntentResponse, error) {
	id, err := s.admit(ctx)
	if err != nil {
		return nil, err
	}
	r := speech.Request{Session: m.GetSession(), Thing: id, Ours: s.cfg.Ours, Kind: speech.Intent, Language: languages[m.GetLanguageCode()], Firmware: m.GetFirmwareVersion(), SkipDAS: m.GetSkipDas()}
	a, err := s.cfg.Speech.Text(ctx, r, m.GetTextInput())
	if err != nil {
		return nil, err
	}
	return &chipperpb.IntentResponse{Session: m.GetSession(), DeviceId: m.GetDeviceId(), IsFinal: true, Mode: m.GetMode(), IntentResult: result(a, m.GetIntentService())}, nil
}

func (s *server) StreamingIntent(st grpc.BidiStreamingServer[chipperpb.StreamingIntentRequest, chipperpb.IntentResponse]) error {
	return listen(s, st, speech.Intent, intentOf)
}

func (s *server) StreamingKnowledgeGraph(st grpc.BidiStreamingServer[chipperpb.StreamingKnowledgeGraphRequest, chipperpb.KnowledgeGraphResponse]) error {
	return listen(s, st, speech.Knowledge, knowledgeOf)
}

func (s *server) StreamingIntentGraph(st grpc.BidiStreamingServer[chipperpb.StreamingIntentGraphRequest, chipperpb.IntentGraphResponse]) error {
	return listen(s, st, speech.Graph, graphOf)
}

func intentOf(m *chipperpb.StreamingIntentRequest, a speech.Answer) *chipperpb.IntentResponse {
	out := &chipperpb.IntentResponse{Session: m.GetSession(), DeviceId: m.GetDeviceId(), IsFinal: true, Mode: m.GetMode()}
	if m.GetSpeechOnly() {
		out.SpeechResult = &chipperpb.SpeechResult{Transcript: a.Text, IsFinal: true}
	} else {
		out.IntentResult = result(a, m.GetIntentService())
	}
	return out
}

func knowledgeOf(m *chipperpb.StreamingKnowledgeGraphRequest, a speech.Answer) *chipperpb.KnowledgeGraphResponse {
	out := &chipperpb.KnowledgeGraphResponse{Session: m.GetSession(), DeviceId: m.GetDeviceId(), QueryText: a.Text, CommandType: NoResult}
	if k := a.Knowledge; k != nil {
		out.SpokenText, out.CommandType, out.DomainsUsed = k.Spoken, Information, k.Domains
	}
	return out
}

func graphOf(m *chipperpb.StreamingIntentGraphRequest, a speech.Answer) *chipperpb.IntentGraphResponse {
	out := &chipperpb.IntentGraphResponse{Session: m.GetSession(), DeviceId: m.GetDeviceId(), IsFinal: true, Mode: m.GetMode(), QueryText: a.Text, ResponseType: chipperpb.IntentGraphMode_INTENT}
	switch k := a.Knowledge; {
	case m.GetSpeechOnly():
		out.SpeechResult = &chipperpb.SpeechResult{Transcript: a.Text, IsFinal: true}
	case k != nil:
		out.ResponseType, out.SpokenText, out.CommandType, out.DomainsUsed = chipperpb.IntentGraphMode_KNOWLEDGE_GRAPH, k.Spoken, Information, k.Domains
	default:
		out.IntentResult = result(a, m.GetIntentService())
	}
	return out
}

// languages by code (part of VEC-NLP-08). A code that is none of them is the service's own language.
var languages = map[chipperpb.LanguageCode]string{
	chipperpb.LanguageCode_ENGLISH_US: "en-US", chipperpb.LanguageCode_ENGLISH_UK: "en-GB", chipperpb.LanguageCode_ENGLISH_AU: "en-AU",
	chipperpb.LanguageCode_GERMAN: "de-DE", chipperpb.LanguageCode_FRENCH: "fr-FR",
}

// result returns an intent as robots hear it (VEC-INT-06).
func result(a speech.Answer, by chipperpb.IntentService) *chipperpb.IntentResult {
	all, in := true, a.Intent
	known, _ := intent.ByCloud(in.Cloud) // an unmatched or custom one has no parameters
	for _, p := range known.Params {
		_, ok := in.Params[p.Cloud]
		all = all && ok
	}
	return &chipperpb.IntentResult{QueryText: a.Text, Action: in.Cloud, IntentConfidence: float32(in.Confidence), SpeechConfidence: float32(a.Confidence),
		Parameters: in.Params, AllParametersPresent: all, Service: by}
}

// spoken is the first message of a stream of speech, and each later one.
type spoken[Req any] interface {
	*Req
	GetSession() string
	GetLanguageCode() chipperpb.LanguageCode
	GetFirmwareVersion() string
	GetSkipDas() bool
	GetSaveAudio() bool
	GetAudioEncoding() chipperpb.AudioEncoding
	GetInputAudio() []byte
}

// request returns what the first message asks for.
func request[Req any, P spoken[Req]](p P, id thing.ID, kind speech.Kind) (speech.Request, error) {
	r := speech.Request{Session: p.GetSession(), Thing: id, Kind: kind, Language: languages[p.GetLanguageCode()], Firmware: p.GetFirmwareVersion(),
		SkipDAS: p.GetSkipDas(), SaveAudio: p.GetSaveAudio(), Encoding: speech.PCM}
	switch e := p.GetAudioEncoding(); e {
	case chipperpb.AudioEncoding_LINEAR_PCM:
	case chipperpb.AudioEncoding_OGG_OPUS:
		r.Encoding = speech.Opus
	default:
		return r, errs.New(errs.Invalid, "audio_encoding %d: want 0 (LINEAR_PCM) or 1 (OGG_OPUS)", e)
	}
	if t, ok := any(p).(interface{ GetTimezone() string }); ok {
		r.Timezone = t.GetTimezone()
	}
	if t, ok := any(p).(interface{ GetSpeechOnly() bool }); ok {
		r.SpeechOnly = t.GetSpeechOnly()
	}
	return r, nil
}

// listen answers one stream of speech. single_utterance changes nothing: robots that leave it out wait for the end to be found here, too.
func listen[Req, Resp any, P spoken[Req]](s *server, st grpc.BidiStreamingServer[Req, Resp], kind speech.Kind, answer func(P, speech.Answer) *Resp) error {
	ctx, cancel := context.WithTimeout(st.Context(), robotTime)
	defer cancel()
	m, id, err := first(s, st)
	if err != nil {
		return err
	}
	if !s.cfg.Speech.Hears() {
		return status.Error(codes.Unimplemented, NoSpeech)
	}
	r, err := request(P(m), id, kind)
	r.Ours = s.cfg.Ours
	if err != nil {
		return err
	}
	a, err := s.cfg.Speech.Listen(ctx, r, &audio[Req, Resp, P]{st, P(m).GetInputAudio()})
	if err != nil {
		return err
	}
	return st.Send(answer(m, a))
}

// audio is the audio of a stream.
type audio[Req, Resp any, P spoken[Req]] struct {
	st    grpc.BidiStreamingServer[Req, Resp]
	first []byte
}

// Next implements speech.Audio. Messages without audio say nothing.
func (a *audio[Req, Resp, P]) Next() ([]byte, error) {
	for {
		b := a.first
		a.first = nil
		if len(b) > 0 {
			return b, nil
		}
		m, err := a.st.Recv()
		if err != nil {
			return nil, err
		}
		a.first = P(m).GetInputAudio()
	}
}

// first reads the first message of a stream, and then says whether its sender is served, and who it proved to be.
func first[Req, Resp any](s *server, st grpc.BidiStreamingServer[Req, Resp]) (*Req, thing.ID, error) {
	id, leave, refused, err := s.enter(st.Context())
	if err != nil {
		return nil, "", err
	}
	defer leave()
	late := time.NewTimer(firstTime)
	defer late.Stop()
	select {
	case m := <-receive(st):
		switch {
		case refused != nil:
			return nil, "", refused
		case errors.Is(m.err, io.EOF): // a robot that gave up at once is told why, too
			return new(Req), id, nil
		}
		return m.msg, id, m.err
	case <-late.C:
		return nil, "", errs.New(errs.Invalid, "no first message within %v", firstTime)
	}
}

// StreamingConnectionCheck counts the messages until as many came as the first one announces.
func (s *server) StreamingConnectionCheck(st grpc.BidiStreamingServer[chipperpb.StreamingConnectionCheckRequest, chipperpb.ConnectionCheckResponse]) error {
	_, leave, refused, err := s.enter(st.Context())
	if err != nil {
		return err
	}
	defer leave()
	out, err := s.count(st, refused)
	if err != nil {
		return err
	}
	return st.Send(out)
}

// count returns an error if the stream broke, or for a check that is refused or too large.
func (s *server) count(st grpc.BidiStreamingServer[chipperpb.StreamingConnectionCheckRequest, chipperpb.ConnectionCheckResponse], refused error) (*chipperpb.ConnectionCheckResponse, error) {
	late := time.NewTimer(checkTime)
	defer late.Stop()
	out, want, bytes := &chipperpb.ConnectionCheckResponse{Status: statusError}, uint32(0), 0
	for messages := receive(st); ; messages = receive(st) {
		select {
		case <-late.C:
			out.Status = statusTimeout
			return out, nil
		case m := <-messages:
			switch {
			case refused != nil:
				return nil, refused
			case errors.Is(m.err, io.EOF):
				return out, nil
			case m.err != nil:
				return nil, m.err
			}
			if out.FramesReceived++; out.FramesReceived == 1 {
				if want = frames(m.msg); want > maxFrames {
					return nil, errs.New(errs.Invalid, "connection check of %d messages (%d ms in chunks of %d ms): want at most %d", want, m.msg.GetTotalAudioMs(), m.msg.GetAudioPerRequest(), maxFrames)
				}
			}
			if bytes += len(m.msg.GetInputAudio()); bytes > maxAudio {
				return nil, errs.New(errs.Exhausted, "connection check of more than %d bytes of audio", maxAudio)
			}
			if out.FramesReceived >= want {
				out.Status = statusSuccess
				return out, nil
			}
		}
	}
}

// frames returns how many messages a connection check consists of, at least one. 0 means that the robot does not say.
func frames(m *chipperpb.StreamingConnectionCheckRequest) uint32 {
	total, each := m.GetTotalAudioMs(), m.GetAudioPerRequest()
	if total == 0 {
		total = usualTotal
	}
	if each == 0 {
		each = usualFrame
	}
	return max(total/each, 1)
}

// admit returns who the caller of ctx proved to be.
func (s *server) admit(ctx context.Context) (thing.ID, error) {
	if s.cfg.ByAddr != nil {
		if d := s.cfg.ByAddr.Allow(kitgrpc.PeerFrom(ctx).Addr); d > 0 {
			return "", errs.RetryLater(d, "too many requests from this address", nil)
		}
	}
	id, err := s.cfg.Prove(ctx)
	if err == nil && id != "" && s.cfg.ByThing != nil {
		if d := s.cfg.ByThing.Allow(string(id)); d > 0 {
			err = errs.RetryLater(d, "too many requests of this robot", nil)
		}
	}
	return id, err
}

type received[Req any] struct {
	msg *Req
	err error
}

// receive reads one message. The wait for it ends with the stream, which ends when its handler returns.
func receive[Req, Resp any](st grpc.BidiStreamingServer[Req, Resp]) <-chan received[Req] {
	out := make(chan received[Req], 1) // the reader never waits for a taker
	go func() {
		m, err := st.Recv()
		out <- received[Req]{m, err}
	}()
	return out
}
