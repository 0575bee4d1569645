package sdktest

import (
	"context"

	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"
	"google.golang.org/protobuf/proto"

	"kennel/infra/api/robotpb"
)

func authorization(ctx context.Context) string {
	if v := metadata.ValueFromIncomingContext(ctx, "authorization"); len(v) > 0 {
		return v[0]
	}
	return ""
}

func unary[A proto.Message](ctx context.Context, r *Robot, q proto.Message) (a A, err error) {
	err = r.call(ctx, authorization(ctx), q, func(m proto.Message) error { a = m.(A); return nil })
	return a, known(err, func(md metadata.MD) { _ = grpc.SetTrailer(ctx, md) }) // in a call it does
}

func stream[A any](r *Robot, q proto.Message, s grpc.ServerStreamingServer[A]) error {
	return known(r.call(s.Context(), authorization(s.Context()), q, func(m proto.Message) error { return s.SendMsg(m) }), s.SetTrailer)
}

func (r *Robot) Describe(ctx context.Context, q *robotpb.DescribeRequest) (*robotpb.Description, error) {
	return unary[*robotpb.Description](ctx, r, q)
}

func (r *Robot) Read(ctx context.Context, q *robotpb.ReadRequest) (*robotpb.Values, error) {
	return unary[*robotpb.Values](ctx, r, q)
}

func (r *Robot) Claim(ctx context.Context, q *robotpb.ClaimRequest) (*robotpb.Lease, error) {
	return unary[*robotpb.Lease](ctx, r, q)
}

func (r *Robot) Renew(ctx context.Context, q *robotpb.RenewRequest) (*robotpb.Lease, error) {
	return unary[*robotpb.Lease](ctx, r, q)
}

func (r *Robot) Release(ctx context.Context, q *robotpb.ReleaseRequest) (*robotpb.ReleaseResponse, error) {
	return unary[*robotpb.ReleaseResponse](ctx, r, q)
}

func (r *Robot) Stop(ctx context.Context, q *robotpb.StopRequest) (*robotpb.StopResponse, error) {
	return unary[*robotpb.StopResponse](ctx, r, q)
}

func (r *Robot) Settings(ctx context.Context, q *robotpb.SettingsRequest) (*robotpb.SettingsResponse, error) {
	return unary[*robotpb.SettingsResponse](ctx, r, q)
}

func (r *Robot) Change(ctx context.Context, q *robotpb.ChangeRequest) (*robotpb.SettingsResponse, error) {
	return unary[*robotpb.SettingsResponse](ctx, r, q)
}

func (r *Robot) Subscribe(q *robotpb.SubscribeRequest, s grpc.ServerStreamingServer[robotpb.Values]) error {
	return stream(r, q, s)
}

func (r *Robot) Events(q *robotpb.EventsRequest, s grpc.ServerStreamingServer[robotpb.Event]) error {
	return stream(r, q, s)
}

func (r *Robot) Orders(q *robotpb.OrdersRequest, s grpc.ServerStreamingServer[robotpb.OrderReport]) error {
	return stream(r, q, s)
}

func (r *Robot) Order(q *robotpb.OrderRequest, s grpc.ServerStreamingServer[robotpb.Progress]) error {
	return stream(r, q, s)
}

func (r *Robot) Image(ctx context.Context, q *robotpb.ImageRequest) (*robotpb.Picture, error) {
	return unary[*robotpb.Picture](ctx, r, q)
}

func (r *Robot) Images(q *robotpb.ImagesRequest, s grpc.ServerStreamingServer[robotpb.Picture]) error {
	return stream(r, q, s)
}

func (r *Robot) Screen(ctx context.Context, q *robotpb.ScreenRequest) (*robotpb.Picture, error) {
	return unary[*robotpb.Picture](ctx, r, q)
}

func (r *Robot) Screens(q *robotpb.ScreensRequest, s grpc.ServerStreamingServer[robotpb.Picture]) error {
	return stream(r, q, s)
}

func (r *Robot) Animations(ctx context.Context, q *robotpb.AnimationsRequest) (*robotpb.AnimationList, error) {
	return unary[*robotpb.AnimationList](ctx, r, q)
}

func (r *Robot) Play(q *robotpb.PlayRequest, s grpc.ServerStreamingServer[robotpb.PlayProgress]) error {
	return stream(r, q, s)
}

func (r *Robot) Say(q *robotpb.SayRequest, s grpc.ServerStreamingServer[robotpb.SpeechProgress]) error {
	return stream(r, q, s)
}

func (r *Robot) Sound(q *robotpb.SoundRequest, s grpc.ServerStreamingServer[robotpb.SpeechProgress]) error {
	return stream(r, q, s)
}

func (r *Robot) Listen(q *robotpb.ListenRequest, s grpc.ServerStreamingServer[robotpb.HeardPiece]) error {
	return stream(r, q, s)
}

func (r *Robot) Sounds(q *robotpb.SoundsRequest, s grpc.ServerStreamingServer[robotpb.SoundPiece]) error {
	return stream(r, q, s)
}
