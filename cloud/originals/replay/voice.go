package replay

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"kennel/infra/api/chipperpb"
)

// Audio of the original: 6 s in pieces of 120 ms, 16 kHz and 16 bits before it is coded at 66 kbit/s.
const (
	pieceMillis = 120
	allMillis   = 6000
	pieceBytes  = 66_000 / 8 * pieceMillis / 1000
	voiceTime   = 9 * time.Second // the robot's deadline of a stream
	checkTime   = 12 * time.Second
)

// words is speech as the original encodes it: Ogg Opus, 120 ms on a page.
//
//go:embed words.opus
var words []byte

// pages returns what is sent of speech, piece by piece: the two pages of the head at once, then a page each.
func pages(b []byte) (out [][]byte) {
	for len(b) > 27 {
		n := 27 + int(b[26])
		for _, l := range b[27:n] {
			n += int(l)
		}
		out, b = append(out, b[:n]), b[n:]
	}
	return append([][]byte{slices.Concat(out[0], out[1])}, out[2:]...)
}

// ErrEOF is all that a robot learns of a stream that is refused before its first message was taken: it never reads the status.
var ErrEOF = errors.New("EOF: the stream was refused before the robot's first message, whose status it never reads")

// chipper opens a connection for one stream, without a client certificate.
func (r *Robot) chipper(session string) (*grpc.ClientConn, error) {
	md := metadata{"device-id": r.Thing, "session-id": session, "trusted_app_key": ""}
	if r.Token != "" {
		for k, v := range r.access() {
			md[k] = v
		}
	}
	return r.connect(r.Servers.Chipper, md)
}

// pause waits for the next piece of audio.
func (r *Robot) pause(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(r.FramePause):
		return nil
	}
}

// Voice makes a voice request and returns what the robot hears: nil if it was understood, else the status; ErrEOF.
func (r *Robot) Voice(ctx context.Context) error {
	within, cancel := context.WithTimeout(ctx, voiceTime)
	defer cancel()
	id := sessionID()
	conn, err := r.chipper(id)
	if err != nil {
		return err
	}
	defer conn.Close()
	stream, err := chipperpb.NewChipperGrpcClient(conn).StreamingIntentGraph(within)
	if err != nil {
		return r.heard(ctx, err)
	}
	audio := pages(words)
	first := &chipperpb.StreamingIntentGraphRequest{Session: id, DeviceId: r.Thing, FirmwareVersion: r.OS, BootId: "00000000-0000-4000-8000-000000000000\n",
		AudioEncoding: chipperpb.AudioEncoding_OGG_OPUS, SaveAudio: true, InputAudio: audio[0]}
	if err := stream.Send(first); err != nil {
		return ErrEOF
	}
	answer := make(chan error, 1) // its reader may have left
	go func() {
		resp, err := stream.Recv()
		for err == nil && !resp.IsFinal {
			resp, err = stream.Recv()
		}
		answer <- err
	}()
	for i := 1; ; i = min(i+1, len(audio)-1) { // the last page, which is silent, until the cloud has heard enough
		select {
		case err := <-answer:
			return r.heard(ctx, err)
		case <-time.After(r.FramePause):
		}
		// The answer tells why a piece is not taken.
		_ = stream.Send(&chipperpb.StreamingIntentGraphRequest{InputAudio: audio[i]})
	}
}

// CheckHTTP asks for the check address over http and then over https (VEC-CLD-07).
func (r *Robot) CheckHTTP(ctx context.Context) error {
	query := url.Values{"emresn": {r.Thing[len("vic:"):]}, "ankiversion": {r.OS}, "victorversion": {r.OS}}.Encode()
	transport := &http.Transport{TLSClientConfig: r.tls(""), DialContext: r.dial, DisableKeepAlives: true}
	client := http.Client{Transport: transport, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	for _, scheme := range []string{"http", "https"} {
		req, err := http.NewRequestWithContext(ctx, http.MethodHead, scheme+"://"+r.Servers.Check+"?"+query, nil)
		if err != nil {
			return err
		}
		req.Header.Set("User-Agent", "Victor-CCHECK/"+r.OS)
		resp, err := client.Do(req)
		if err != nil {
			return err
		}
		_ = resp.Body.Close() // an answer to HEAD has none
		if resp.StatusCode/100 != 2 {
			return fmt.Errorf("HEAD %s://%s answered %s, want 200", scheme, r.Servers.Check, resp.Status)
		}
	}
	return nil
}

// CheckStream is the last step of the connection check: 50 pieces of audio in real time, and an answer of Success.
func (r *Robot) CheckStream(ctx context.Context) error {
	within, cancel := context.WithTimeout(ctx, checkTime)
	defer cancel()
	id := sessionID()
	conn, err := r.chipper(id)
	if err != nil {
		return err
	}
	defer conn.Close()
	stream, err := chipperpb.NewChipperGrpcClient(conn).StreamingConnectionCheck(within)
	if err != nil {
		return r.heard(ctx, err)
	}
	const pieces = allMillis / pieceMillis
	for i := range pieces {
		m := &chipperpb.StreamingConnectionCheckRequest{InputAudio: make([]byte, pieceBytes)}
		if i == 0 {
			m.Session, m.DeviceId, m.FirmwareVersion, m.TotalAudioMs, m.AudioPerRequest = id, r.Thing, r.OS, allMillis, pieceMillis
		} else if err := r.pause(within); err != nil {
			return err
		}
		if err := stream.Send(m); errors.Is(err, io.EOF) {
			break // the answer tells why
		} else if err != nil {
			return err
		}
	}
	resp, err := stream.Recv()
	switch {
	case err != nil:
		return r.heard(ctx, err)
	case resp.Status != "Success":
		return status.Errorf(codes.Unknown, "connection check: %q, want Success", resp.Status)
	case uint8(resp.FramesReceived) != pieces:
		return status.Errorf(codes.Unknown, "connection check: %d chunks arrived, want %d", resp.FramesReceived, pieces)
	}
	return nil
}
