package vectorsdk

import (
	"context"
	"time"

	"kennel/edge/agent/photos"
	"kennel/edge/gateway"
	"kennel/edge/sight"
	"kennel/infra/api/vectorpb"
	"kennel/infra/errs"
)

// Photos are the robot's album (edge/agent/photos.Album).
type Photos interface {
	List() []photos.Info
	Add(picture, thumbnail []byte, taken time.Time) (uint32, error)
	Fetch(id uint32, kind photos.Kind) ([]byte, error)
	Delete(id uint32) error
}

// TakePhoto takes a photo, stores it and tells the event streams (part of VEC-PHO-01). Its size is the usual one of pictures, below what the camera can. Errors
// are Unavailable while the camera gives no picture, Exhausted for a full album, and those of the disk.
func (f *Facade) TakePhoto(ctx context.Context) error {
	if f.cfg.Photos == nil {
		return errAlbum
	}
	p, err := f.cfg.Gateway.Photograph(ctx, func(*sight.Frame) bool { return true })
	if err != nil {
		return err
	}
	_, _, full, err := f.picture(p, false)
	if err != nil {
		return err
	}
	thumbnail, err := p.JPEG(true)
	if err != nil {
		return err
	}
	id, err := f.cfg.Photos.Add(full, thumbnail, time.Now())
	if err == nil {
		f.moments.add(&vectorpb.Event{EventType: &vectorpb.Event_PhotoTaken{PhotoTaken: &vectorpb.PhotoTaken{PhotoId: id}}})
	}
	return err
}

// errAlbum is of a robot whose album cannot be read.
var errAlbum = errs.Coded(errs.Unavailable, "no_album", "the robot's album cannot be read; its log says why")

func (f *Facade) photosInfo(context.Context, client, *vectorpb.PhotosInfoRequest) (*vectorpb.PhotosInfoResponse, error) {
	if f.cfg.Photos == nil {
		return nil, errAlbum
	}
	a := &vectorpb.PhotosInfoResponse{Status: heard()}
	for _, p := range f.cfg.Photos.List() {
		a.PhotoInfos = append(a.PhotoInfos, &vectorpb.PhotoInfo{PhotoId: p.ID, TimestampUtc: uint32(p.Taken.Unix()), PhotoCopiedToApp: p.Copied, ThumbCopiedToApp: p.Seen})
	}
	return a, nil
}

// fetch returns a file of a photo; ok is false if there is none of that number.
func (f *Facade) fetch(id uint32, kind photos.Kind) (image []byte, ok bool, err error) {
	if f.cfg.Photos == nil {
		return nil, false, errAlbum
	}
	image, err = f.cfg.Photos.Fetch(id, kind)
	if errs.KindOf(err) == errs.NotFound {
		return nil, false, nil
	}
	return image, err == nil, err
}

// found is the status of a call for a photo.
func found(ok bool) *vectorpb.ResponseStatus {
	if !ok {
		return answered(vectorpb.ResponseStatus_NOT_FOUND)
	}
	return heard()
}

func (f *Facade) photo(_ context.Context, _ client, q *vectorpb.PhotoRequest) (*vectorpb.PhotoResponse, error) {
	image, ok, err := f.fetch(q.PhotoId, photos.Full)
	return &vectorpb.PhotoResponse{Status: found(ok), Success: ok, Image: image}, err
}

func (f *Facade) thumbnail(_ context.Context, _ client, q *vectorpb.ThumbnailRequest) (*vectorpb.ThumbnailResponse, error) {
	image, ok, err := f.fetch(q.PhotoId, photos.Thumb)
	return &vectorpb.ThumbnailResponse{Status: found(ok), Success: ok, Image: image}, err
}

func (f *Facade) deletePhoto(_ context.Context, _ client, q *vectorpb.DeletePhotoRequest) (*vectorpb.DeletePhotoResponse, error) {
	if f.cfg.Photos == nil {
		return nil, errAlbum
	}
	err := f.cfg.Photos.Delete(q.PhotoId)
	if errs.KindOf(err) == errs.NotFound {
		return &vectorpb.DeletePhotoResponse{Status: found(false)}, nil
	}
	return &vectorpb.DeletePhotoResponse{Status: found(true), Success: err == nil}, err
}

// photoHandlers are the calls for photos. Each shows or ends a picture, so it needs the right to the camera.
func (f *Facade) photoHandlers() map[string]handler {
	return map[string]handler{
		"PhotosInfo":  unary(gateway.Camera, f.photosInfo),
		"Photo":       unary(gateway.Camera, f.photo),
		"Thumbnail":   unary(gateway.Camera, f.thumbnail),
		"DeletePhoto": unary(gateway.Camera, f.deletePhoto),
	}
}
