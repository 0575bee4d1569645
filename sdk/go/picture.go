package kennel

import (
	"context"
	"time"

	"google.golang.org/grpc"

	"kennel/infra/api/robotpb"
)

// Picture is one of the robot's camera.
type Picture struct {
	Format        string // jpeg, rgb (a byte each of red, green and blue, row by row) or grey8
	Data          []byte
	Width, Height int // pixels
	Seq           uint64
	At            time.Duration // when its exposure began, by the robot's clock
	Missed        uint64        // pictures that newer ones replaced, since the one before
	Exposure      time.Duration
	Gain          float64

	// The calibration: a point x to the right of the camera, y below and z before it is at (FX*x/z + CX, FY*y/z + CY).
	FX, FY, CX, CY float64
}

// Look says how pictures are made. The zero value is as the slots of the robot's camera say, with 5 pictures a second.
type Look struct {
	Format  string  // "": as the slot format says
	Quality int     // of jpeg, 1, small and bad, to 100, best; 0: as the slot quality says
	Rate    float64 // pictures a second, at most 15; 0: 5
}

func (l Look) quality() *uint32 {
	if l.Quality == 0 {
		return nil
	}
	q := uint32(l.Quality)
	return &q
}

func picture(m *robotpb.Picture) Picture {
	c := m.GetCalibration()
	return Picture{Format: m.Format, Data: m.Data, Width: int(m.Width), Height: int(m.Height), Seq: m.Seq, At: time.Duration(m.AtUs) * time.Microsecond, Missed: m.Missed,
		Exposure: time.Duration(m.ExposureS * float64(time.Second)), Gain: m.Gain, FX: c.GetFx(), FY: c.GetFy(), CX: c.GetCx(), CY: c.GetCy()}
}

// maxPicture is more than the largest picture takes.
const maxPicture = 16 << 20

// Picture takes a picture with the robot's camera. Its refusals are unable for a body without a camera, and no_picture for a camera that is off.
func (r *Robot) Picture(ctx context.Context, l Look) (Picture, error) {
	call := func(ctx context.Context, q *robotpb.ImageRequest, opts ...grpc.CallOption) (*robotpb.Picture, error) {
		return r.api.Image(ctx, q, append(opts, grpc.MaxCallRecvMsgSize(maxPicture))...)
	}
	m, err := ask(ctx, r, call, &robotpb.ImageRequest{Format: l.Format, Quality: l.quality()})
	if err != nil {
		return Picture{}, err
	}
	return picture(m), nil
}

// Pictures gives see the pictures of the robot's camera. A see that takes long gets the newest one next. While the camera is off there are none. It returns as
// Subscribe does.
func (r *Robot) Pictures(ctx context.Context, l Look, see func(Picture) error) error {
	call := func(ctx context.Context, q *robotpb.ImagesRequest, opts ...grpc.CallOption) (grpc.ServerStreamingClient[robotpb.Picture], error) {
		return r.api.Images(ctx, q, append(opts, grpc.MaxCallRecvMsgSize(maxPicture))...)
	}
	return listen(ctx, r, call, &robotpb.ImagesRequest{Format: l.Format, Quality: l.quality(), RateHz: l.Rate}, func(m *robotpb.Picture) error {
		if m.Format == "" {
			return nil // it only says that the robot is there
		}
		return see(picture(m))
	})
}
