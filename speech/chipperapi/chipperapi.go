// Package chipperapi is the published speech service over gRPC (infra/api/chipperpb). This cloud does not understand speech yet: a request
// for it is answered Unimplemented, with a sentence that the robot logs. The connection check needs no recogniser and is answered in full
// (VEC-CLD-07).
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
)

// NoSpeech is the answer to everything that needs a recogniser.
const NoSpeech = "this cloud does not understand speech yet: the robot reached it, and its settings, tokens and uploads work"

// Bounds: ours, but for the deadline of a robot, which is 9 s (peer facts, section 1).
const (
	firstTime = 9 * time.Second  // how long a stream may take to send its first message
	checkTime = 12 * time.Second // how long a connection check may take
	maxFrames = 1000             // in one connection check; original robots send 50
	maxAudio  = 1 << 20          // bytes in one connection check; original robots send at most 192,000
	maxChecks = 200              // connection checks at once
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

// Register adds the published service to s. byAddr paces calls by the address of the robot.
func Register(s grpc.ServiceRegistrar, byAddr Limiter) {
	chipperpb.RegisterChipperGrpcServer(s, &server{byAddr: byAddr, slots: make(chan struct{}, maxChecks)})
}

type server struct {
	chipperpb.UnimplementedChipperGrpcServer
	byAddr Limiter
	slots  chan struct{} // one for each connection check
}

func (s *server) TextIntent(ctx context.Context, _ *chipperpb.TextRequest) (*chipperpb.IntentResponse, error) {
	if err := s.pace(ctx); err != nil {
		return nil, err
	}
	return nil, status.Error(codes.Unimplemented, NoSpeech)
}

func (s *server) StreamingIntent(st grpc.BidiStreamingServer[chipperpb.StreamingIntentRequest, chipperpb.IntentResponse]) error {
	return refuse(s, st)
}

func (s *server) StreamingKnowledgeGraph(st grpc.BidiStreamingServer[chipperpb.StreamingKnowledgeGraphRequest, chipperpb.KnowledgeGraphResponse]) error {
	return refuse(s, st)
}

func (s *server) StreamingIntentGraph(st grpc.BidiStreamingServer[chipperpb.StreamingIntentGraphRequest, chipperpb.IntentGraphResponse]) error {
	return refuse(s, st)
}

// refuse reads one message before it answers: an original robot whose first send fails sees EOF and never reads the status.
func refuse[Req, Resp any](s *server, st grpc.BidiStreamingServer[Req, Resp]) error {
	if err := s.pace(st.Context()); err != nil {
		return err
	}
	late := time.NewTimer(firstTime)
	defer late.Stop()
	select {
	case m := <-receive(st):
		if m.err != nil && !errors.Is(m.err, io.EOF) {
			return m.err
		}
		return status.Error(codes.Unimplemented, NoSpeech)
	case <-late.C:
		return errs.New(errs.Invalid, "no first message within %v", firstTime)
	}
}

// StreamingConnectionCheck counts the messages until as many came as the first one announces.
func (s *server) StreamingConnectionCheck(st grpc.BidiStreamingServer[chipperpb.StreamingConnectionCheckRequest, chipperpb.ConnectionCheckResponse]) error {
	if err := s.pace(st.Context()); err != nil {
		return err
	}
	select {
	case s.slots <- struct{}{}:
		defer func() { <-s.slots }()
	default:
		return errs.RetryLater(time.Second, "too many connection checks at once", nil)
	}
	out, err := count(st)
	if err != nil {
		return err
	}
	return st.Send(out)
}

// count returns an error if the stream broke, or for a check that is too large.
func count(st grpc.BidiStreamingServer[chipperpb.StreamingConnectionCheckRequest, chipperpb.ConnectionCheckResponse]) (*chipperpb.ConnectionCheckResponse, error) {
	late := time.NewTimer(checkTime)
	defer late.Stop()
	out, want, bytes := &chipperpb.ConnectionCheckResponse{Status: statusError}, uint32(0), 0
	for messages := receive(st); ; messages = receive(st) {
		select {
		case <-late.C:
			out.Status = statusTimeout
			return out, nil
		case m := <-messages:
			if errors.Is(m.err, io.EOF) {
				return out, nil
			}
			if m.err != nil {
				return nil, m.err
			}
			if out.FramesReceived++; out.FramesReceived == 1 {
				if want = frames(m.msg); want > maxFrames {
					return nil, errs.New(errs.Invalid, "connection check of %d messages (%d ms in pieces of %d ms): want at most %d", want, m.msg.GetTotalAudioMs(), m.msg.GetAudioPerRequest(), maxFrames)
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

func (s *server) pace(ctx context.Context) error {
	if d := s.byAddr.Allow(kitgrpc.PeerFrom(ctx).Addr); d > 0 {
		return errs.RetryLater(d, "too many requests from this address", nil)
	}
	return nil
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
