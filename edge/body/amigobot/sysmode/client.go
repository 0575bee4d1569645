package sysmode

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"time"

	"kennel/edge/body/amigobot/flash"
	"kennel/edge/body/amigobot/ihex"
	"kennel/edge/body/amigobot/sip"
)

// Port is the line to the System port, as far as Client needs it; package port has lines of this form.
type Port interface {
	Now() time.Duration
	Read(b []byte) (int, error)
	Write(b []byte) (int, error)
	Wait(deadline time.Duration) (bool, error)
}

// A request is sent this often, each time with this long for the reply (own default). The longest request and reply together take 0.35 s at
// 9600 bit/s, and the erasure of a region is within it.
const (
	tries    = 3
	patience = 2 * time.Second
)

// Errors of Client. ErrRefused is followed by the robot's reason.
var (
	ErrSilent  = errors.New("robot does not answer on its System port; is it in System mode")
	ErrRefused = errors.New("refused by the robot")
)

// Client edits the memory of a robot in System mode. One goroutine at a time may use it.
type Client struct {
	port     Port
	parser   sip.Parser
	sequence byte
}

// NewClient returns a client of the robot behind p.
func NewClient(p Port) *Client { return &Client{port: p} }

func (c *Client) call(ctx context.Context, tries int, number byte, args ...byte) ([]byte, error) {
	c.sequence++
	request, err := sip.AppendFrame(nil, append([]byte{number, c.sequence}, args...))
	if err != nil {
		return nil, err
	}
	for range tries {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if n, err := c.port.Write(request); err != nil {
			return nil, fmt.Errorf("write to the System port: %w", err)
		} else if n < len(request) {
			return nil, fmt.Errorf("write to the System port: it took %d of %d bytes", n, len(request))
		}
		reply, err := c.receive(number, c.port.Now()+patience)
		if err == nil && reply[2] != done {
			return nil, fmt.Errorf("%w: %s", ErrRefused, reply[3:])
		}
		if err == nil {
			return reply[3:], nil
		}
		if !errors.Is(err, ErrSilent) {
			return nil, err
		}
	}
	return nil, ErrSilent
}

// receive returns the reply to the request under way, or ErrSilent at the deadline.
func (c *Client) receive(number byte, deadline time.Duration) ([]byte, error) {
	for {
		for payload, ok := c.parser.Next(); ok; payload, ok = c.parser.Next() {
			if len(payload) >= 3 && payload[0] == number && payload[1] == c.sequence {
				return payload, nil
			}
		}
		if ready, err := c.port.Wait(deadline); err != nil {
			return nil, fmt.Errorf("wait for the System port: %w", err)
		} else if !ready {
			return nil, ErrSilent
		}
		n, err := c.port.Read(c.parser.Space())
		if err != nil {
			return nil, fmt.Errorf("read the System port: %w", err)
		}
		c.parser.Fill(n)
		c.parser.Expire(c.port.Now())
	}
}

// Hello returns the version of AmigOS. The robot forgets edits that were not committed.
func (c *Client) Hello(ctx context.Context) (string, error) {
	b, err := c.call(ctx, tries, Hello)
	return string(b), err
}

// Params returns the parameters in the robot's FLASH.
func (c *Client) Params(ctx context.Context) (flash.Values, error) {
	b, err := c.call(ctx, tries, ReadParams)
	if err != nil {
		return flash.Values{}, err
	}
	return flash.ParseImage(b)
}

// Save stores the variables that differ from those in FLASH, all or none (AMIGO-CF-08).
func (c *Client) Save(ctx context.Context, v *flash.Values) error {
	if _, err := c.Hello(ctx); err != nil { // a robot that was interrupted has edits of its own
		return err
	}
	stored, err := c.Params(ctx)
	if err != nil {
		return err
	}
	for k := range flash.Count {
		if v.Value(k) == stored.Value(k) || k.Param().Constant {
			continue
		}
		if _, err := c.call(ctx, tries, WriteParam, append([]byte{byte(k)}, v.Value(k)...)...); err != nil {
			return err
		}
	}
	_, err = c.call(ctx, tries, Commit)
	return err
}

// Leave ends System mode. The robot resets and loads the stored parameters.
func (c *Client) Leave(ctx context.Context) error {
	_, err := c.call(ctx, 1, Leave)
	return err
}

// Kind returns the region for which segments are (AMIGO-DL-03).
func Kind(segments []ihex.Segment) (Region, error) {
	if len(segments) == 0 {
		return Region{}, errors.New("no data")
	}
	region, _ := RegionAt(segments[0].Address)
	for _, s := range segments {
		if !region.Holds(s.Address, len(s.Data)) {
			return Region{}, fmt.Errorf("%d bytes at %#x are neither program (%#x to %#x) nor sounds (%#x to %#x)", len(s.Data), s.Address,
				Program.Base, Program.end(), Sounds.Base, Sounds.end())
		}
	}
	return region, nil
}

func (r Region) end() uint32 { return r.Base + uint32(r.Size) - 1 }

// Load erases the region of segments, writes and verifies them. progress is called with the number of bytes written.
func (c *Client) Load(ctx context.Context, segments []ihex.Segment, progress func(written int)) error {
	region, err := Kind(segments)
	if err != nil {
		return err
	}
	le := binary.LittleEndian
	if _, err := c.call(ctx, tries, Erase, le.AppendUint32(nil, region.Base)...); err != nil {
		return fmt.Errorf("erase the %s: %w", region.Name, err)
	}
	written := 0
	for _, s := range segments {
		for i := 0; i < len(s.Data); i += PageSize {
			page := s.Data[i:min(i+PageSize, len(s.Data))]
			at := s.Address + uint32(i)
			if _, err := c.call(ctx, tries, WritePage, append(le.AppendUint32(nil, at), page...)...); err != nil {
				return fmt.Errorf("write %#x: %w", at, err)
			}
			written += len(page)
			progress(written)
		}
	}
	for _, s := range segments {
		args := le.AppendUint32(le.AppendUint32(le.AppendUint32(nil, s.Address), uint32(len(s.Data))), crc32.ChecksumIEEE(s.Data))
		if _, err := c.call(ctx, tries, Verify, args...); err != nil {
			return fmt.Errorf("verify %#x: %w", s.Address, err)
		}
	}
	return nil
}
