package clip

import (
	"fmt"
	"unicode/utf8"

	"kennel/edge/anim/flatbuf"
)

// file is the root table of a binary file (VEC-AFF-02).
type file struct {
	Clips []Clip `fb:"0" json:"clips"`
}

// ParseBinary reads the clips of a FlatBuffers file. Fields that newer files have beyond the schema are ignored. ErrClip for bytes that are no such file, for
// two clips with one name, and for keyframes whose times do not ascend (VEC-AFF-01 to 04).
func ParseBinary(b []byte) ([]Clip, error) {
	var f file
	if err := flatbuf.Unmarshal(b, &f); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrClip, err)
	}
	return f.Clips, form(f.Clips)
}

// AppendBinary appends clips as a FlatBuffers file. ErrClip for clips that ParseBinary refuses, and for files above flatbuf.MaxSize.
func AppendBinary(dst []byte, clips []Clip) ([]byte, error) {
	if err := form(clips); err != nil {
		return dst, err
	}
	b, err := flatbuf.Append(dst, &file{clips})
	if err != nil {
		return dst, fmt.Errorf("%w: %w", ErrClip, err)
	}
	return b, nil
}

// MaxFrames is the most keyframes of a track; our own limit.
const MaxFrames = 20_000

// form checks what all forms share: names, texts that must be there, and times that ascend.
func form(clips []Clip) error {
	seen := make(map[string]bool, len(clips))
	for i := range clips {
		c := &clips[i]
		if seen[c.Name] || !isText(c.Name) {
			return fmt.Errorf("%w: clip %d: expected a name of its own, found %.60q", ErrClip, i, c.Name)
		}
		seen[c.Name] = true
		for _, p := range append(c.order(), c.texts()...) {
			return p
		}
	}
	return nil
}

// isText reports whether a required text is one: of 1 to 200 bytes.
func isText(s string) bool { return s != "" && len(s) <= 200 && utf8.ValidString(s) }

// texts returns the required texts that are none.
func (c *Clip) texts() []Problem {
	k := checker{clip: c}
	text := func(track string, i int, field, s string) {
		if k.track, k.keyframe = track, i; !isText(s) {
			k.add(field, "a text of 1 to 200 bytes", fmt.Sprintf("%.40q", s))
		}
	}
	for i, x := range c.Tracks.Sprites {
		text("FaceAnimationKeyFrame", i, "animName", x.Sequence)
	}
	for i, x := range c.Tracks.Events {
		text("EventKeyFrame", i, "event_id", x.ID)
	}
	for i, x := range c.Tracks.Body {
		text("BodyMotionKeyFrame", i, "radius_mm", string(x.Radius))
	}
	for i, x := range c.Tracks.Boxes {
		text("SpriteBoxKeyFrame", i, "spriteBoxName", x.Name)
		text("SpriteBoxKeyFrame", i, "layer", x.Layer)
		text("SpriteBoxKeyFrame", i, "assetName", x.Asset)
		text("SpriteBoxKeyFrame", i, "renderMethod", x.Method)
		text("SpriteBoxKeyFrame", i, "spriteSeqEndType", x.End)
	}
	return k.found
}
