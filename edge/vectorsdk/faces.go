package vectorsdk

import (
	"context"

	"kennel/infra/api/vectorpb"
)

// A robot without an eye for faces has never enrolled one: the calls for its memory of them say so, and change nothing. The calls that look for a face are
// absent.

// enrolledNames returns the faces that the robot knows, which are none.
func (f *Facade) enrolledNames(context.Context, client, *vectorpb.RequestEnrolledNamesRequest) (*vectorpb.RequestEnrolledNamesResponse, error) {
	return &vectorpb.RequestEnrolledNamesResponse{Status: fine()}, nil
}

// renameFace finds no face of that id with the old name (part of VEC-FAC-06).
func (f *Facade) renameFace(_ context.Context, _ client, q *vectorpb.UpdateEnrolledFaceByIDRequest) (*vectorpb.UpdateEnrolledFaceByIDResponse, error) {
	if q.FaceId <= 0 || q.NewName == "" {
		return nil, errInvalid("face_id: %d with the new name %.40q, want a positive id and a name", q.FaceId, q.NewName)
	}
	return &vectorpb.UpdateEnrolledFaceByIDResponse{Status: answered(vectorpb.ResponseStatus_NOT_FOUND)}, nil
}

// eraseFace finds no face of that id.
func (f *Facade) eraseFace(_ context.Context, _ client, q *vectorpb.EraseEnrolledFaceByIDRequest) (*vectorpb.EraseEnrolledFaceByIDResponse, error) {
	if q.FaceId <= 0 {
		return nil, errInvalid("face_id: %d, want a positive one", q.FaceId)
	}
	return &vectorpb.EraseEnrolledFaceByIDResponse{Status: answered(vectorpb.ResponseStatus_NOT_FOUND)}, nil
}

// eraseFaces leaves the robot without a face that it knows, as it was (part of VEC-FAC-07).
func (f *Facade) eraseFaces(context.Context, client, *vectorpb.EraseAllEnrolledFacesRequest) (*vectorpb.EraseAllEnrolledFacesResponse, error) {
	return &vectorpb.EraseAllEnrolledFacesResponse{Status: fine()}, nil
}

// cancelEnrollment finds no enrollment under way.
func (f *Facade) cancelEnrollment(context.Context, client, *vectorpb.CancelFaceEnrollmentRequest) (*vectorpb.CancelFaceEnrollmentResponse, error) {
	return &vectorpb.CancelFaceEnrollmentResponse{Status: answered(vectorpb.ResponseStatus_NOT_FOUND)}, nil
}
