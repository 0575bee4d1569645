package face

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
)

// The values of an Eye, in the order of the eye vectors of animation files (VEC-FCE-04).
const (
	EyeCenterX        = iota // pixels to the right of the eye's place
	EyeCenterY               // pixels below it
	EyeScaleX                // 1 is EyeWidth
	EyeScaleY                // 1 is EyeHeight
	EyeAngle                 // degrees, clockwise as a person sees the display
	LowerInnerRadiusX        // shares of half the width and height of the eye; inner is the side of the nose
	LowerInnerRadiusY
	UpperInnerRadiusX
	UpperInnerRadiusY
	UpperOuterRadiusX
	UpperOuterRadiusY
	LowerOuterRadiusX
	LowerOuterRadiusY
	UpperLidY     // share of the eye's height that the lid hides
	UpperLidAngle // degrees, clockwise
	UpperLidBend  // above 0 the lid hides more of the middle than of the corners
	LowerLidY
	LowerLidAngle
	LowerLidBend
	Saturation // share of the colour's saturation
	Lightness  // share of full brightness
	GlowSize   // share of Style.Glow
	HotSpotCenterX
	HotSpotCenterY // -1 and 1 are the edges of the eye
	GlowLightness  // brightness of the glow beside the eye, as a share of the eye's own
	EyeValues      // how many there are
)

// olderValues is the length of eye vectors in files made before an eye had a light of its own: they end with LowerLidBend.
const olderValues = LowerLidBend + 1

// Eye holds the looks of one eye. Saturation, Lightness and GlowSize below 0 mean their default.
type Eye [EyeValues]float32

// Field describes one value of an eye or of the whole face.
type Field struct {
	Name     string // as text forms spell it
	Min, Max float32
	Default  float32
	mirrors  bool // a value for both eyes has the other sign in the right one
}

// EyeFields describes the values of an Eye (VEC-FCE-04). The ranges of centres and of the angle are our own: what the display can show.
var EyeFields = [EyeValues]Field{
	EyeCenterX:        {Name: "eye_center_x", Min: -Width, Max: Width},
	EyeCenterY:        {Name: "eye_center_y", Min: -Height, Max: Height},
	EyeScaleX:         {Name: "eye_scale_x", Max: 10, Default: 1},
	EyeScaleY:         {Name: "eye_scale_y", Max: 10, Default: 1},
	EyeAngle:          {Name: "eye_angle", Min: -360, Max: 360, mirrors: true},
	LowerInnerRadiusX: {Name: "lower_inner_radius_x", Max: 1, Default: 0.5},
	LowerInnerRadiusY: {Name: "lower_inner_radius_y", Max: 1, Default: 0.5},
	UpperInnerRadiusX: {Name: "upper_inner_radius_x", Max: 1, Default: 0.5},
	UpperInnerRadiusY: {Name: "upper_inner_radius_y", Max: 1, Default: 0.5},
	UpperOuterRadiusX: {Name: "upper_outer_radius_x", Max: 1, Default: 0.5},
	UpperOuterRadiusY: {Name: "upper_outer_radius_y", Max: 1, Default: 0.5},
	LowerOuterRadiusX: {Name: "lower_outer_radius_x", Max: 1, Default: 0.5},
	LowerOuterRadiusY: {Name: "lower_outer_radius_y", Max: 1, Default: 0.5},
	UpperLidY:         {Name: "upper_lid_y", Max: 1},
	UpperLidAngle:     {Name: "upper_lid_angle", Min: -45, Max: 45, mirrors: true},
	UpperLidBend:      {Name: "upper_lid_bend", Min: -1, Max: 1},
	LowerLidY:         {Name: "lower_lid_y", Max: 1},
	LowerLidAngle:     {Name: "lower_lid_angle", Min: -45, Max: 45, mirrors: true},
	LowerLidBend:      {Name: "lower_lid_bend", Min: -1, Max: 1},
	Saturation:        {Name: "saturation", Min: -1, Max: 1, Default: 1},
	Lightness:         {Name: "lightness", Min: -1, Max: 1, Default: 1},
	GlowSize:          {Name: "glow_size", Min: -1, Max: 1, Default: 0.5},
	HotSpotCenterX:    {Name: "hot_spot_center_x", Min: -1, Max: 1},
	HotSpotCenterY:    {Name: "hot_spot_center_y", Min: -1, Max: 1},
	GlowLightness:     {Name: "glow_lightness", Max: 1, Default: 0.35},
}

// The values of a whole face.
const (
	Angle   = iota // degrees, clockwise
	CenterX        // pixels to the right of the display's middle
	CenterY        // pixels below it
	ScaleX
	ScaleY
	ScanlineOpacity // brightness of every other line; 1: no lines are seen
	WholeValues     // how many there are
)

// WholeFields describes the values of a whole face; the ranges are our own, as those of EyeFields.
var WholeFields = [WholeValues]Field{
	Angle:           {Name: "face_angle", Min: -360, Max: 360},
	CenterX:         {Name: "face_center_x", Min: -Width, Max: Width},
	CenterY:         {Name: "face_center_y", Min: -Height, Max: Height},
	ScaleX:          {Name: "face_scale_x", Max: 10, Default: 1},
	ScaleY:          {Name: "face_scale_y", Max: 10, Default: 1},
	ScanlineOpacity: {Name: "scanline_opacity", Max: 1, Default: 1},
}

// Params are everything that a clip says of a face. The left eye is the one at the left of the picture.
type Params struct {
	Whole       [WholeValues]float32
	Left, Right Eye
}

// Neutral is the face without any expression.
var Neutral = func() (p Params) {
	for i, f := range WholeFields {
		p.Whole[i] = f.Default
	}
	for i, f := range EyeFields {
		p.Left[i], p.Right[i] = f.Default, f.Default
	}
	return p
}()

// ErrParam: a value that no face has; the error names the value, what was expected and what was found.
var ErrParam = errors.New("face parameter refused")

// check returns ErrParam for a value out of range.
func (f *Field) check(prefix string, v float32) error {
	if v >= f.Min && v <= f.Max {
		return nil
	}
	return fmt.Errorf("%w: %s%s: expected %v to %v, found %v", ErrParam, prefix, f.Name, f.Min, f.Max, v)
}

// Check returns ErrParam unless every value is in its range.
func (p *Params) Check() error {
	for i := range p.Whole {
		if err := WholeFields[i].check("", p.Whole[i]); err != nil {
			return err
		}
	}
	for i := range EyeValues {
		if err := EyeFields[i].check("left.", p.Left[i]); err != nil {
			return err
		}
		if err := EyeFields[i].check("right.", p.Right[i]); err != nil {
			return err
		}
	}
	return nil
}

// EyeOf returns the eye of a vector of an animation file: 25 values, 19 in older files, or none, which is the neutral eye (VEC-FCE-04). ErrParam for
// another length or a value out of range.
func EyeOf(v []float32) (Eye, error) {
	e := Neutral.Left
	if n := len(v); n != 0 && n != olderValues && n != EyeValues {
		return e, fmt.Errorf("%w: eye: expected %d or %d values, found %d", ErrParam, olderValues, EyeValues, n)
	}
	copy(e[:], v)
	for i := range e {
		if err := EyeFields[i].check("", e[i]); err != nil {
			return e, err
		}
	}
	return e, nil
}

// value returns the value that is drawn: the nearest one in range, and the default for one that is not a number or that asks for it.
func (f *Field) value(v float32) float32 {
	if math.IsNaN(float64(v)) || v < 0 && f.Min == -1 && f.Default > 0 {
		return f.Default
	}
	return min(max(v, f.Min), f.Max)
}

// resolved returns the eye with all its defaults filled in and all its values in range.
func (e Eye) resolved() Eye {
	for i := range e {
		e[i] = EyeFields[i].value(e[i])
	}
	return e
}

// resolved returns the face with all its defaults filled in and all its values in range.
func (p Params) resolved() Params {
	for i := range p.Whole {
		p.Whole[i] = WholeFields[i].value(p.Whole[i])
	}
	p.Left, p.Right = p.Left.resolved(), p.Right.resolved()
	return p
}

// Mix returns the face a share t, 0 to 1, of the way from a to b: every value moves in a straight line (VEC-FCE-07).
func Mix(a, b *Params, t float32) Params {
	from, to := a.resolved(), b.resolved()
	mix := func(x *float32, y float32) { *x += (y - *x) * t }
	for i := range from.Whole {
		mix(&from.Whole[i], to.Whole[i])
	}
	for i := range EyeValues {
		mix(&from.Left[i], to.Left[i])
		mix(&from.Right[i], to.Right[i])
	}
	return from
}

// Add puts a layer such as a blink or a glance on top of a face: centres and angles add, scales multiply, hot spots average if the layer moves one. The
// layer's other values have no effect (VEC-FCE-07).
func (p *Params) Add(layer *Params) {
	*p = p.resolved()
	p.Whole[Angle] += layer.Whole[Angle]
	p.Whole[CenterX] += layer.Whole[CenterX]
	p.Whole[CenterY] += layer.Whole[CenterY]
	p.Whole[ScaleX] *= layer.Whole[ScaleX]
	p.Whole[ScaleY] *= layer.Whole[ScaleY]
	for _, pair := range [2]struct{ to, from *Eye }{{&p.Left, &layer.Left}, {&p.Right, &layer.Right}} {
		for _, i := range [...]int{EyeCenterX, EyeCenterY, EyeAngle} {
			pair.to[i] += pair.from[i]
		}
		for _, i := range [...]int{EyeScaleX, EyeScaleY} {
			pair.to[i] *= pair.from[i]
		}
		for _, i := range [...]int{HotSpotCenterX, HotSpotCenterY} {
			if pair.from[i] != 0 {
				pair.to[i] = (pair.to[i] + pair.from[i]) / 2
			}
		}
	}
	*p = p.resolved()
}

// Set changes one value by its name: a name of WholeFields, "left." or "right." and a name of EyeFields, or a name of EyeFields alone for both eyes. For
// both eyes angles are mirrored: the left eye has the value, the right one its opposite. ErrParam for a name that no value has and for a value out of range.
func (p *Params) Set(name string, v float32) error {
	for i := range WholeFields {
		if f := &WholeFields[i]; f.Name == name {
			p.Whole[i] = v
			return f.check("", v)
		}
	}
	prefix, rest := "", name
	for _, side := range []string{"left.", "right."} {
		if after, ok := strings.CutPrefix(name, side); ok {
			prefix, rest = side, after
		}
	}
	i := slices.IndexFunc(EyeFields[:], func(f Field) bool { return f.Name == rest })
	if i < 0 {
		return fmt.Errorf("%w: expected the name of a value such as upper_lid_y, left.eye_scale_x or face_angle, found %.40q", ErrParam, name)
	}
	f := &EyeFields[i]
	if prefix != "right." {
		p.Left[i] = v
	}
	if prefix != "left." {
		p.Right[i] = v
		if prefix == "" && f.mirrors {
			p.Right[i] = -v
		}
	}
	return f.check(prefix, v)
}

// Apply changes a face by one word of a text: the name of an expression replaces all its values, "name=number" sets one. ErrParam says what was expected.
func (p *Params) Apply(word string) error {
	if name, number, ok := strings.Cut(word, "="); ok {
		return p.assign(name, number)
	}
	e, ok := expressions[word]
	if !ok {
		return fmt.Errorf("%w: expected name=number or one of %s, found %.40q", ErrParam, strings.Join(Expressions(), ", "), word)
	}
	*p = e
	return nil
}

// assign sets the value with a name to a number.
func (p *Params) assign(name, number string) error {
	v, err := strconv.ParseFloat(number, 32)
	if err != nil || math.IsInf(v, 0) || math.IsNaN(v) {
		return fmt.Errorf("%w: %.40s: expected a number, found %.40q", ErrParam, name, number)
	}
	return p.Set(name, float32(v))
}

// Words returns the words that Apply makes the face of, beginning with Neutral's values: only those that differ.
func (p *Params) Words() (words []string) {
	word := func(prefix string, f *Field, v float32) {
		words = append(words, prefix+f.Name+"="+strconv.FormatFloat(float64(v), 'g', -1, 32))
	}
	for i, v := range p.Whole {
		if v != Neutral.Whole[i] {
			word("", &WholeFields[i], v)
		}
	}
	for i := range EyeValues {
		f, l, r, n := &EyeFields[i], p.Left[i], p.Right[i], Neutral.Left[i]
		if both := f.mirrors && l == -r || !f.mirrors && l == r; both && l != n {
			word("", f, l)
			continue
		}
		if l != n {
			word("left.", f, l)
		}
		if r != n {
			word("right.", f, r)
		}
	}
	return words
}
