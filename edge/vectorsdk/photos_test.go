package vectorsdk_test

import (
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"kennel/infra/api/vectorpb"
	"kennel/infra/testwait"
)

// TestPhotos: the intent to take a photo takes one, which the event streams hear of; it is listed, shown as picture and as thumbnail, says that both were
// fetched, and goes when it is deleted (VEC-PHO-01). All need the right to the camera.
func TestPhotos(t *testing.T) {
	t.Parallel()
	s := newStudio(t)
	c := s.dial(t)
	l := s.listen(t, &vectorpb.EventRequest{ListType: &vectorpb.EventRequest_WhiteList{WhiteList: &vectorpb.FilterList{List: []string{"photo_taken", "user_intent"}}}})
	l.primary()
	testwait.Until(t, patience, "the camera", testwait.Holds(func() bool { return slices.Contains(s.intents.Intents(), "take_a_photo") }))
	before := time.Now()
	if a, err := c.AppIntent(as(t, "all"), &vectorpb.AppIntentRequest{Intent: "intent_photo_take_extend"}); err != nil || a.Status.Code != vectorpb.ResponseStatus_RESPONSE_RECEIVED {
		t.Fatalf("%v, %v", a, err)
	}
	if e := l.await(func(e *vectorpb.Event) bool { return e.GetUserIntent() != nil }).GetUserIntent(); e.IntentId != 40 || e.JsonData != "{}" {
		t.Errorf("%v", e)
	}
	id := l.await(func(e *vectorpb.Event) bool { return e.GetPhotoTaken() != nil }).GetPhotoTaken().PhotoId
	list := func() []*vectorpb.PhotoInfo {
		a, err := c.PhotosInfo(as(t, "camera"), &vectorpb.PhotosInfoRequest{})
		if err != nil {
			t.Fatal(err)
		}
		return a.PhotoInfos
	}
	if got := list(); len(got) != 1 || got[0].PhotoId != id || got[0].PhotoCopiedToApp || got[0].ThumbCopiedToApp || int64(got[0].TimestampUtc) < before.Unix() {
		t.Fatalf("%v", got)
	}
	full, err := c.Photo(as(t, "camera"), &vectorpb.PhotoRequest{PhotoId: id})
	if err != nil || !full.Success {
		t.Fatal(full, err)
	}
	shows(t, full.Image, 640, 360)
	small, err := c.Thumbnail(as(t, "camera"), &vectorpb.ThumbnailRequest{PhotoId: id})
	if err != nil || !small.Success {
		t.Fatal(small, err)
	}
	shows(t, small.Image, 320, 180)
	if got := list(); !got[0].PhotoCopiedToApp || !got[0].ThumbCopiedToApp {
		t.Errorf("%v", got)
	}
	for path, want := range map[string]string{
		"photo": `{"status":{"code":101},"success":false,"image":""}`, "thumbnail": `{"status":{"code":101},"success":false,"image":""}`,
		"delete_photo": `{"status":{"code":101},"success":false}`,
	} {
		if got, _, body := s.post(t, "all", "/v1/"+path, `{"photo_id":99}`); got != http.StatusOK || !sameJSON(body, want) {
			t.Errorf("%s of a photo that is not there: %d %s", path, got, body)
		}
	}
	if _, err := c.Photo(as(t, "look"), &vectorpb.PhotoRequest{PhotoId: id}); status.Code(err) != codes.PermissionDenied {
		t.Errorf("without the right to the camera: %v", err)
	}
	if a, err := c.DeletePhoto(as(t, "camera"), &vectorpb.DeletePhotoRequest{PhotoId: id}); err != nil || !a.Success || len(list()) != 0 {
		t.Errorf("%v, %v", a, err)
	}
}

// TestAppIntent: an intent of an app is done, or the answer says why it is not (VEC-AUD-03, VEC-INT-05).
func TestAppIntent(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	ask := func(name, param string) (vectorpb.ResponseStatus_StatusCode, error) {
		a, err := d.dial(t).AppIntent(as(t, "all"), &vectorpb.AppIntentRequest{Intent: name, Param: param})
		return a.GetStatus().GetCode(), err
	}
	l := d.listen(t, &vectorpb.EventRequest{})
	l.primary()
	if code, err := ask("intent_clock_settimer", strings.Repeat("x", 90)); err != nil || code != vectorpb.ResponseStatus_RESPONSE_RECEIVED {
		t.Errorf("%v, %v", code, err)
	}
	if e := l.await(func(e *vectorpb.Event) bool { return e.GetUserIntent() != nil }).GetUserIntent(); e.IntentId != 38 || e.JsonData != `{"time_s":90}` { // VEC-INT-13
		t.Errorf("%v", e)
	}
	if code, err := ask("intent_nonsense", ""); err != nil || code != vectorpb.ResponseStatus_NOT_FOUND {
		t.Errorf("%v, %v", code, err)
	}
	if _, err := ask("intent_clock_settimer", `{"time_s":1.5}`); status.Code(err) != codes.InvalidArgument {
		t.Errorf("%v", err)
	}
	for name, want := range map[string]codes.Code{"intent_play_fistbump": codes.Unimplemented, "intent_photo_take_extend": codes.Unimplemented, strings.Repeat("x", 300): codes.InvalidArgument} {
		if _, err := ask(name, ""); status.Code(err) != want {
			t.Errorf("%.40s: %v, want %v", name, err, want)
		}
	}
	testwait.Until(t, patience, "the body", testwait.Holds(func() bool { return slices.Contains(d.intents.Intents(), "movement_forward") }))
	d.granted(t, "other")
	if _, err := ask("intent_imperative_forward", ""); status.Code(err) != codes.Aborted {
		t.Errorf("while a program moves the robot: %v", err)
	}
}
