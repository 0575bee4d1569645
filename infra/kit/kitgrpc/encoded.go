package kitgrpc

import (
	"google.golang.org/grpc/encoding"
	_ "google.golang.org/grpc/encoding/proto" // the codec that encodedCodec is beside
	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/proto"
)

// Encoded is a message with its bytes on the wire: made once and sent to many streams of a NewServer. Neither may be changed.
type Encoded struct {
	proto.Message
	wire []byte
}

// Encode encodes m once for all.
func Encode(m proto.Message) (*Encoded, error) {
	b, err := proto.Marshal(m)
	return &Encoded{m, b}, err
}

// encodedCodec sends an Encoded as it is.
type encodedCodec struct{ encoding.CodecV2 }

func newCodec() encodedCodec { return encodedCodec{encoding.GetCodecV2("proto")} }

func (c encodedCodec) Marshal(v any) (mem.BufferSlice, error) {
	if e, ok := v.(*Encoded); ok {
		return mem.BufferSlice{mem.SliceBuffer(e.wire)}, nil
	}
	return c.CodecV2.Marshal(v)
}
