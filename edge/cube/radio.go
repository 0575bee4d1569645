package cube

import (
	"context"
	"errors"
	"time"
)

// Advert is a device that was heard.
type Advert struct {
	Address string // lower case, with colons: a cube's factory id (VEC-CUBE-05)
	Name    string
	RSSI    int8 // dBm
}

// Name is the name that every cube gives itself (VEC-CUBE-03).
const Name = "Vector Cube"

// Radio is a Bluetooth LE central, as this package needs it (part of VEC-NET-15). Safe for concurrent use.
type Radio interface {
	// Scan listens for so long, and calls heard with each advertisement. ErrNoRadio: there is none.
	Scan(ctx context.Context, long time.Duration, heard func(Advert)) error
	// Connect connects with the device of an address. ctx is of the connecting alone.
	Connect(ctx context.Context, address string) (Link, error)
}

// Link is a connection with a device. Its methods are safe for concurrent use. All return ErrLost when the device is gone.
type Link interface {
	Read(ctx context.Context, characteristic UUID) ([]byte, error)
	Write(ctx context.Context, characteristic UUID, value []byte) error
	// Subscribe asks for the values of a characteristic.
	Subscribe(ctx context.Context, characteristic UUID) error
	// Pace sets the connection's interval, which says how often the device may send.
	Pace(ctx context.Context, interval time.Duration) error
	// Next blocks until a value comes that was subscribed to.
	Next() (characteristic UUID, value []byte, err error)
	// Close ends the connection.
	Close() error
}

// Errors of a radio.
var (
	ErrNoRadio = errors.New("cube: no radio")
	ErrLost    = errors.New("cube: connection lost")
	ErrAbsent  = errors.New("cube: no such device in range")
)

// Intervals of a connection (part of VEC-CUBEPWR-01): a cube in the background tells how it lies and that it moves; taps need an interactable one.
const (
	Background   = 250 * time.Millisecond
	Interactable = 30 * time.Millisecond
)
