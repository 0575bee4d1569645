package face

import (
	"maps"
	"slices"
	"strings"
)

// expressions are faces of our own with a name, for clips and tools.
var expressions = func() map[string]Params {
	all := map[string]Params{"neutral": Neutral}
	for name, words := range map[string]string{
		"happy":     "lower_lid_y=0.34 lower_lid_bend=0.7 eye_scale_y=0.95 eye_scale_x=1.08 upper_inner_radius_x=0.8 upper_inner_radius_y=0.8 upper_outer_radius_x=0.8 upper_outer_radius_y=0.8",
		"delighted": "lower_lid_y=0.44 lower_lid_bend=1 eye_scale_x=1.18 eye_scale_y=1.05 eye_center_y=-3 upper_inner_radius_x=1 upper_inner_radius_y=0.9 upper_outer_radius_x=1 upper_outer_radius_y=0.9",
		"sad":       "upper_lid_y=0.3 upper_lid_angle=-22 eye_scale_y=0.84 eye_scale_x=0.95 eye_center_y=5 hot_spot_center_y=0.3 lightness=0.8",
		"angry":     "upper_lid_y=0.34 upper_lid_angle=26 lower_lid_y=0.12 eye_scale_x=1.06 eye_scale_y=0.9 upper_inner_radius_y=0.3",
		"sleepy":    "upper_lid_y=0.46 upper_lid_bend=-0.15 lower_lid_y=0.06 eye_center_y=4 lightness=0.75",
		"asleep":    "eye_scale_y=0.09 eye_scale_x=1.1 eye_center_y=12 lightness=0.6 glow_size=0.3",
		"closed":    "eye_scale_y=0.07 eye_scale_x=1.12 eye_center_y=2",
		"surprised": "eye_scale_x=1.12 eye_scale_y=1.25 upper_inner_radius_x=0.9 upper_inner_radius_y=0.8 upper_outer_radius_x=0.9 upper_outer_radius_y=0.8 lower_inner_radius_x=0.9 lower_inner_radius_y=0.8 lower_outer_radius_x=0.9 lower_outer_radius_y=0.8",
		"curious":   "left.eye_scale_y=1.15 left.eye_center_y=-3 right.eye_scale_y=0.92 right.upper_lid_y=0.14 right.upper_lid_angle=-8 face_angle=-5 hot_spot_center_y=-0.3",
		"doubtful":  "left.upper_lid_y=0.4 right.eye_scale_y=1.1 right.upper_lid_y=0.06 left.lower_lid_y=0.14",
		"focused":   "upper_lid_y=0.24 lower_lid_y=0.24 eye_scale_x=1.04",
		"shy":       "upper_lid_y=0.2 upper_lid_angle=-12 lower_lid_y=0.18 lower_lid_bend=0.5 hot_spot_center_x=0.4 hot_spot_center_y=0.5 face_center_x=10 face_center_y=6 eye_scale_y=0.9",
		"proud":     "upper_lid_y=0.3 upper_lid_angle=-6 lower_lid_y=0.2 lower_lid_bend=0.5 face_center_y=-6 hot_spot_center_y=-0.4",
		"pained":    "eye_scale_y=0.6 upper_lid_y=0.24 upper_lid_angle=-15 lower_lid_y=0.2 lower_lid_angle=9 eye_scale_x=1.05",
		"left":      "face_center_x=-20 hot_spot_center_x=-0.6 left.eye_scale_y=1.06 right.eye_scale_y=0.94",
		"right":     "face_center_x=20 hot_spot_center_x=0.6 left.eye_scale_y=0.94 right.eye_scale_y=1.06",
		"up":        "face_center_y=-13 hot_spot_center_y=-0.6",
		"down":      "face_center_y=13 hot_spot_center_y=0.6 upper_lid_y=0.12",
		"wink":      "left.eye_scale_y=0.1 left.eye_scale_x=1.1 left.eye_center_y=4 right.lower_lid_y=0.22 right.lower_lid_bend=0.6",
	} {
		p := Neutral
		for word := range strings.FieldsSeq(words) {
			key, number, _ := strings.Cut(word, "=")
			if err := p.assign(key, number); err != nil {
				panic(err) // a table of our own, which the tests walk
			}
		}
		all[name] = p
	}
	return all
}()

// Expressions returns the names of all expressions, sorted.
func Expressions() []string { return slices.Sorted(maps.Keys(expressions)) }

// Expression returns the face with a name, and whether there is one.
func Expression(name string) (Params, bool) {
	p, ok := expressions[name]
	return p, ok
}
