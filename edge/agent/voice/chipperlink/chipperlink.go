// Package chipperlink asks the cloud what a person said, over the published speech service (infra/api/chipperpb) with the robot's device
// certificate. Each session is a connection of its own: it is rare, and nothing of it has to be watched between two sessions.
package chipperlink

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/status"

	"kennel/edge/agent/voice"
	"kennel/infra/api/chipperpb"
	"kennel/infra/errs"
	"kennel/infra/thing"
)

// Link is a voice.Cloud. Safe for concurrent use.
type Link struct {
	Thing    thing.ID
	Boot, OS string
	// Secure returns the address and the TLS configuration of the cloud; its error says why there is none.
	Secure func() (addr string, conf *tls.Config, err error)
	Dial   func(ctx context.Context, network, addr string) (net.Conn, error) // below TLS; nil: the system's
	// Else is asked where no connection can be made although the robot has one to the broker. It may be nil.
	Else voice.Cloud
}

// reachTime bounds how long a connection may take; the audio waits. Own default.
const reachTime = 2 * time.Second

// errUnreached says that Else is to be asked.
var errUnreached = errs.New(errs.Unavailable, "speech: no connection to the cloud's HTTPS port")

// languages are those of the published service, by locale or language (part of VEC-NLP-08).
var languages = map[string]chipperpb.LanguageCode{
	"en-GB": chipperpb.LanguageCode_ENGLISH_UK, "en-AU": chipperpb.LanguageCode_ENGLISH_AU, "de": chipperpb.LanguageCode_GERMAN, "fr": chipperpb.LanguageCode_FRENCH,
}

// languageOf returns the code of a locale, else of its language; English is American where it is none of those above.
func languageOf(locale string) chipperpb.LanguageCode {
	if code, ok := languages[locale]; ok {
		return code
	}
	language, _, _ := strings.Cut(locale, "-")
	return languages[language]
}

func (l *Link) client(ctx context.Context) (chipperpb.ChipperGrpcClient, *grpc.ClientConn, error) {
	addr, conf, err := l.Secure()
	if err != nil {
		return nil, nil, err
	}
	dial := l.Dial
	if dial == nil {
		dial = new(net.Dialer).DialContext
	}
	conn, err := grpc.NewClient("passthrough:///"+addr, grpc.WithTransportCredentials(credentials.NewTLS(conf)), grpc.WithNoProxy(),
		grpc.WithContextDialer(func(ctx context.Context, addr string) (net.Conn, error) { return dial(ctx, "tcp", addr) }))
	if err != nil {
		return nil, nil, fmt.Errorf("speech: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, reachTime)
	defer cancel()
	conn.Connect()
	for state := conn.GetState(); state != connectivity.Ready; state = conn.GetState() {
		if state == connectivity.TransientFailure || !conn.WaitForStateChange(ctx, state) {
			_ = conn.Close() // nothing was asked over it
			return nil, nil, errUnreached
		}
	}
	return chipperpb.NewChipperGrpcClient(conn), conn, nil
}

// Text asks what a typed sentence means.
func (l *Link) Text(ctx context.Context, r voice.Request, text string) (voice.Reply, error) {
	c, conn, err := l.client(ctx)
	if errors.Is(err, errUnreached) && l.Else != nil {
		return l.Else.Text(ctx, r, text)
	}
	if err != nil {
		return voice.Reply{}, err
	}
	defer conn.Close() // the answer is read
	out, err := c.TextIntent(ctx, &chipperpb.TextRequest{Session: r.Session, DeviceId: string(l.Thing), TextInput: text, LanguageCode: languageOf(r.Language),
		FirmwareVersion: l.OS, SkipDas: r.SkipDAS})
	if err != nil {
		return voice.Reply{}, ended(err)
	}
	return intent(out.GetIntentResult())
}

// Listen streams audio and returns the final answer.
func (l *Link) Listen(ctx context.Context, r voice.Request, audio <-chan []byte) (voice.Reply, error) {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	c, conn, err := l.client(ctx)
	if errors.Is(err, errUnreached) && l.Else != nil {
		return l.Else.Listen(ctx, r, audio)
	}
	if err != nil {
		return voice.Reply{}, err
	}
	defer conn.Close() // the answer is read
	if r.Question {
		return l.question(ctx, c, r, audio)
	}
	st, err := c.StreamingIntent(ctx)
	if err != nil {
		return voice.Reply{}, fmt.Errorf("speech: %w", err)
	}
	go pour(ctx, audio, func(piece []byte, first bool) error {
		m := &chipperpb.StreamingIntentRequest{InputAudio: piece}
		if first {
			m.Session, m.DeviceId, m.LanguageCode, m.FirmwareVersion, m.BootId = r.Session, string(l.Thing), languageOf(r.Language), l.OS, l.Boot
			m.SkipDas, m.SaveAudio, m.SingleUtterance, m.AudioEncoding = r.SkipDAS, !r.SkipDAS, true, chipperpb.AudioEncoding_LINEAR_PCM
		}
		return st.Send(m)
	})
	for {
		out, err := st.Recv()
		if err != nil {
			return voice.Reply{}, ended(err)
		}
		if out.GetIntentResult() != nil && (out.GetIsFinal() || out.GetIntentResult().GetAction() != "") {
			return intent(out.GetIntentResult())
		}
	}
}

// question is VEC-NLP-06. What it returns is as original robots name it (peer facts, section 1).
func (l *Link) question(ctx context.Context, c chipperpb.ChipperGrpcClient, r voice.Request, audio <-chan []byte) (voice.Reply, error) {
	st, err := c.StreamingKnowledgeGraph(ctx)
	if err != nil {
		return voice.Reply{}, fmt.Errorf("speech: %w", err)
	}
	go pour(ctx, audio, func(piece []byte, first bool) error {
		m := &chipperpb.StreamingKnowledgeGraphRequest{InputAudio: piece}
		if first {
			m.Session, m.DeviceId, m.LanguageCode, m.FirmwareVersion, m.BootId = r.Session, string(l.Thing), languageOf(r.Language), l.OS, l.Boot
			m.SkipDas, m.SaveAudio, m.Timezone, m.AudioEncoding = r.SkipDAS, !r.SkipDAS, r.Timezone, chipperpb.AudioEncoding_LINEAR_PCM
		}
		return st.Send(m)
	})
	out, err := st.Recv()
	if err != nil {
		return voice.Reply{}, ended(err)
	}
	params := map[string]string{"answer": out.GetSpokenText(), "answer_type": out.GetCommandType(), "query_text": out.GetQueryText()}
	for i, d := range out.GetDomainsUsed() {
		params[fmt.Sprintf("domains.%d", i)] = d
	}
	return voice.Reply{Intent: "intent_knowledge_response_extend", Params: params, Metadata: voice.Metadata{Text: out.GetQueryText()}}, nil
}

// pour sends pieces until the stream ends. What ends it is the receiver's to tell.
func pour(ctx context.Context, audio <-chan []byte, send func(piece []byte, first bool) error) {
	for first := true; ; first = false {
		select {
		case <-ctx.Done():
			return
		case piece := <-audio:
			if send(piece, first) != nil {
				return
			}
		}
	}
}

func ended(err error) error {
	switch {
	case errors.Is(err, io.EOF):
		return errs.New(errs.Unavailable, "speech: the cloud ended the session without an answer")
	case status.Code(err) == codes.DeadlineExceeded: // the cloud knows the deadline too, and its end may come before ours
		return fmt.Errorf("speech: %w: %w", context.DeadlineExceeded, err)
	case status.Code(err) == codes.Unauthenticated, status.Code(err) == codes.PermissionDenied:
		return errs.New(errs.Unauthenticated, "speech: the cloud does not let this robot ask: %w", err)
	}
	return fmt.Errorf("speech: %w", err)
}

// intent is the cloud's answer as the robot takes it.
func intent(in *chipperpb.IntentResult) (voice.Reply, error) {
	if in.GetAction() == "" {
		return voice.Reply{}, errs.New(errs.Corrupt, "speech: no intent in the answer")
	}
	return voice.Reply{Intent: in.GetAction(), Params: in.GetParameters(), Metadata: voice.Metadata{Text: in.GetQueryText(),
		Confidence: float64(in.GetSpeechConfidence()), Handler: strings.ToUpper(in.GetService().String())}}, nil
}
