package robot

import "slices"

// The formats of images by their number (GOSTAI-IF-17.6).
const (
	FormatUnknown = iota
	FormatRGB
	FormatYCbCr
	FormatJPEG
	FormatPPM
	FormatYUV422
	FormatGrey8
	FormatGrey4
	FormatYUV411
	FormatNV12
	FormatYUV420
	FormatRGB565 = 100 // ours (part of GOSTAI-EXT-06)
)

// formatNames are the names of the formats in Format.Name, and of the slots that hold a camera's image converted to them.
var formatNames = [...]string{
	FormatRGB: "rgb", FormatYCbCr: "ycbcr", FormatJPEG: "jpeg", FormatPPM: "ppm", FormatYUV422: "yuv422", FormatGrey8: "grey8",
	FormatGrey4: "grey4", FormatYUV411: "yuv411", FormatNV12: "nv12", FormatYUV420: "yuv420",
}

// ImageFormat returns the number of the format of that name, 0 for none.
func ImageFormat(name string) int { return max(slices.Index(formatNames[:], name), 0) }

// conversions are the slots of a VideoIn that hold its image in another format, named after that (GOSTAI-IF-17.13).
func conversions() (out []Slot) {
	for _, name := range formatNames[1:] {
		out = append(out, read(name, Bytes, "", "val converted to "+name+", once a frame for all who read it").extra())
	}
	return out
}

// ClosestFormat returns what a camera that can make the formats in supported should make when asked for want: that, else one of the same
// class, compressed or raw, else RGB, else JPEG, else whatever it has first (GOSTAI-IF-17.12).
func ClosestFormat(want int, supported []int) int {
	if slices.Contains(supported, want) {
		return want
	}
	for _, f := range supported {
		if f != FormatUnknown && (f == FormatJPEG) == (want == FormatJPEG) && want != FormatUnknown {
			return f
		}
	}
	for _, f := range []int{FormatRGB, FormatJPEG} {
		if slices.Contains(supported, f) {
			return f
		}
	}
	if len(supported) == 0 {
		return FormatUnknown
	}
	return supported[0]
}
