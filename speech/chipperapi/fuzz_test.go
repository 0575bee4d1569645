package chipperapi_test

import (
	"context"
	"errors"
	"fmt"
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
)

// raw passes messages on as they are, well-formed or not.
type raw struct{}

func (raw) Name() string { return "proto" }

func (raw) Marshal(v any) ([]byte, error) { return v.([]byte), nil }

func (raw) Unmarshal(b []byte, v any) error { *v.(*[]byte) = slices.Clone(b); return nil }

// FuzzStream: whatever a robot sends in whichever order, the stream ends with an answer or with a status that says what was wrong. The first byte is the
// call; then come messages, each after its length in bytes.
func FuzzStream(f *testing.F) {
	calls := chipperpb.ChipperGrpc_ServiceDesc.Streams
	program := func(call byte, messages ...proto.Message) []byte {
		out := []byte{call}
		for _, m := range messages {
			b, err := proto.Marshal(m)
			if err != nil || len(b) > 255 {
				f.Fatalf("%d bytes, %v", len(b), err)
			}
			out = append(append(out, byte(len(b))), b...)
		}
		return out
	}
	audio := make([]byte, 200)
	for call := range calls {
		f.Add(program(byte(call), &chipperpb.StreamingIntentRequest{Session: "s", DeviceId: "vic:00e20100", InputAudio: audio}, &chipperpb.StreamingIntentRequest{InputAudio: audio}))
		f.Add(program(byte(call), &chipperpb.StreamingIntentRequest{AudioEncoding: 1, LanguageCode: 99, InputAudio: []byte("OggS")}))
		f.Add(program(byte(call)))
		f.Add([]byte{byte(call), 3, 0xff, 0xff, 0xff, 200, 1})
	}
	f.Add(program(3, &chipperpb.StreamingConnectionCheckRequest{TotalAudioMs: 600, AudioPerRequest: 120, InputAudio: audio}, &chipperpb.StreamingConnectionCheckRequest{InputAudio: audio}))
	f.Add(program(3, &chipperpb.StreamingConnectionCheckRequest{TotalAudioMs: 1<<32 - 1, AudioPerRequest: 1}))
	conn := serveWith(f, heard("set a timer for ten minutes")).(client).ClientConn
	told := []codes.Code{codes.OK, codes.InvalidArgument, codes.ResourceExhausted, codes.Unavailable, codes.Internal} // the last for what is no message
	f.Fuzz(func(t *testing.T, b []byte) {
		if len(b) == 0 || len(b) > 20_000 {
			return
		}
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		defer cancel()
		desc := &calls[int(b[0])%len(calls)]
		st, err := conn.NewStream(ctx, desc, fmt.Sprintf("/%s/%s", chipperpb.ChipperGrpc_ServiceDesc.ServiceName, desc.StreamName), grpc.ForceCodec(raw{}))
		if err != nil {
			t.Fatal(err)
		}
		for b = b[1:]; len(b) > 0 && err == nil; {
			n := min(int(b[0]), len(b)-1)
			err, b = st.SendMsg(b[1:1+n]), b[1+n:]
		}
		_ = st.CloseSend() // it may have ended already
		answers := 0
		for err = nil; err == nil; answers++ {
			var got []byte
			err = st.RecvMsg(&got)
		}
		if errors.Is(err, io.EOF) {
			err = nil
		}
		if code := status.Code(err); !slices.Contains(told, code) || code == codes.Internal && !strings.Contains(err.Error(), "unmarshal") || code == codes.OK && answers != 2 {
			t.Errorf("%s: %d answers, %v", desc.StreamName, answers-1, err)
		}
	})
}
