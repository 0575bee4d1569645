package originalswire

import (
	"time"

	"google.golang.org/grpc"

	"kennel/certs/limit"
	"kennel/cloud/wire"
	"kennel/speech/chipperapi"
)

// Calls of the speech service from one address: of a house whose robots all hear the same word.
const (
	speechByAddrEvery = 200 * time.Millisecond
	speechByAddrBurst = 100
)

// Speech wires the speech service of original robots, as far as there is one.
func Speech() wire.Slice {
	byAddr := limit.NewByAddr(speechByAddrEvery, speechByAddrBurst)
	return wire.Slice{Calls: func(s grpc.ServiceRegistrar) { chipperapi.Register(s, byAddr) }}
}
