package lifeos

// tracker is the camera's colour tracking.
type tracker struct {
	camera, on bool
	colour     int32
}

// Track takes the place of the object that the camera follows: 1 to 9 in the field of view, top left to bottom right as on a telephone, 0 when it is lost; and
// its size (part of PLEO-SEN-113).
func (s *System) Track(place, size int32) {
	st := s.sensors.all[SensorTrackable]
	if s.asleep(SensorTrackable) {
		return
	}
	if size < s.properties.values[PropTrackWeight] {
		place = 0
	}
	if place < 0 || place > 9 || place == st.value {
		return
	}
	s.trigger(st, place)
}
