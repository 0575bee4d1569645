package registry

import (
	"context"
	"strings"
	"time"

	"kennel/infra/api/chipperpb"
	"kennel/infra/api/jdocspb"
	"kennel/infra/api/tokenpb"
	"kennel/infra/logging"
	"kennel/infra/thing"
)

// Names of steps at the port of original robots, beside those of the token service.
const (
	StepCall    = "call"    // it called, and proved who it is; the code says which service
	StepTLS     = "tls"     // the handshake broke off
	StepService = "service" // it asked for what is not served there
)

// The kinds of calls of original robots.
const (
	CallTokens    = "tokens"
	CallDocuments = "documents"
	CallSpeech    = "speech"
	CallCheck     = "connection check"
	CallUploads   = "uploads"
	CallOther     = "other"
	CallRefused   = "refused" // it was there, and got nothing
)

// Asked returns the kind of a gRPC call by its method; CallOther for services that this cloud does not know.
func Asked(method string) string {
	service, _, _ := strings.Cut(strings.TrimPrefix(method, "/"), "/")
	switch {
	case method == chipperpb.ChipperGrpc_StreamingConnectionCheck_FullMethodName:
		return CallCheck
	case service == chipperpb.ChipperGrpc_ServiceDesc.ServiceName:
		return CallSpeech
	case service == jdocspb.Jdocs_ServiceDesc.ServiceName:
		return CallDocuments
	case service == tokenpb.Token_ServiceDesc.ServiceName:
		return CallTokens
	}
	return CallOther
}

// Call is a sign of life of a robot that keeps no connection.
type Call struct {
	Thing   thing.ID // proved
	What    string   // its kind
	Peer    string   // its address
	Version string   // of its software, as it says; "": not told
	Name    string   // by which it looked us up; "": not told
}

// How often a robot's calls are written: its last one once in callEvery, and each kind of call once in kindEvery.
const (
	callEvery = time.Minute
	kindEvery = time.Hour
)

// SelfTest is the robot of self-tests. Its steps are erased after each one, so that Seen notes all of its calls.
const SelfTest thing.ID = "vic:00efffff"

// Seen notes a call of a robot that has proved who it is, and makes it known to the fleet. It costs a write once a minute or so. Trouble is
// logged and does not fail the call.
func (s *Service) Seen(ctx context.Context, c Call) {
	last, kind := s.calls.Allow(string(c.Thing)), s.kinds.Allow(string(c.Thing)+" "+c.What)
	if last > 0 && kind > 0 && c.Thing != SelfTest {
		return
	}
	made, err := s.store.Seen(ctx, c.Thing, OSVersion(c.Version), callEvery/2)
	if err == nil {
		step := Step{Thing: c.Thing, Name: StepCall, OK: true, Code: c.What, Peer: c.Peer, Version: c.Version}
		if c.Name != "" {
			step.Detail = "called " + c.Name
		}
		err = s.Record(ctx, step)
	}
	switch {
	case err != nil:
		s.log.WarnContext(ctx, "call not recorded", logging.Thing, c.Thing, logging.Err, err)
	case made:
		s.log.InfoContext(ctx, "original robot called for the first time", logging.Thing, c.Thing, logging.Addr, c.Peer, "version", Clip(c.Version, 80))
	}
}

// OSVersion returns the version in what an original robot says of itself: "Victor/2.0.1.6076 grpc-go/1.40.0" is 2.0.1.6076. Of a fingerprint
// it takes the part that looks like a version.
func OSVersion(agent string) string {
	text, _, _ := strings.Cut(strings.TrimPrefix(agent, "Victor/"), " ")
	if text == "" || !strings.HasPrefix(agent, "Victor/") {
		return ""
	}
	for _, part := range strings.FieldsFunc(text, func(r rune) bool { return strings.ContainsRune("/:_,;", r) }) {
		if strings.Count(part, ".") >= 2 && strings.ContainsRune("0123456789", rune(strings.TrimLeft(part, "vV")[0])) {
			return plain(strings.TrimLeft(part, "vV"))
		}
	}
	return plain(text)
}
