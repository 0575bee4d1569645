package chipperlink

import (
	"context"
	"fmt"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"kennel/edge/agent/health/conncheck"
	"kennel/infra/api/chipperpb"
	"kennel/infra/errs"
)

// checked is the status of a check that the cloud got whole (VEC-CLD-07).
const checked = "Success"

// soundRate is the bytes of a second of the robot's sound: 16-bit samples, 16 kHz.
const soundRate = 2 * 16000

// Check sends pieces of silence, each so long, in real time, and returns how many the cloud has counted. conncheck.ErrSlow: not all of them in time. Denied: the
// cloud refused the robot.
func (l *Link) Check(ctx context.Context, pieces int, each time.Duration) (seen int, err error) {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	c, conn, err := l.client(ctx)
	if err != nil {
		return 0, err
	}
	defer conn.Close() // the answer is read
	st, err := c.StreamingConnectionCheck(ctx)
	if err != nil {
		return 0, fmt.Errorf("speech: %w", err)
	}
	go func() {
		m := &chipperpb.StreamingConnectionCheckRequest{Session: "connection-check", DeviceId: string(l.Thing), FirmwareVersion: l.OS,
			TotalAudioMs: uint32((time.Duration(pieces) * each).Milliseconds()), AudioPerRequest: uint32(each.Milliseconds()),
			InputAudio: make([]byte, soundRate*each/time.Second)}
		tick := time.NewTicker(each)
		defer tick.Stop()
		for range pieces {
			if st.Send(m) != nil {
				return // the receiver tells why
			}
			m = &chipperpb.StreamingConnectionCheckRequest{InputAudio: m.InputAudio}
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			}
		}
	}()
	out, err := st.Recv()
	switch code := status.Code(err); {
	case code == codes.Unauthenticated || code == codes.PermissionDenied:
		return 0, errs.New(errs.Denied, "speech: the cloud refused the robot: %w", err)
	case err != nil:
		return 0, ended(err)
	case out.GetStatus() != checked:
		return int(out.GetFramesReceived()), fmt.Errorf("speech: the cloud says %.40q after %d of %d pieces: %w", out.GetStatus(), out.GetFramesReceived(), pieces, conncheck.ErrSlow)
	}
	return int(out.GetFramesReceived()), nil
}
