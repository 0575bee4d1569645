package skeleton

import (
	"math"
	"strconv"

	"kennel/infra/api/motionwire"
)

// Of URDF documents, which demand a limit of effort and speed of each joint with a range. A body tells no effort; 1 rad/s is for joints whose speed it does not tell.
const (
	effort = "1" // N·m
	slow   = 1e6 // micro-radian a second
)

// AppendURDF appends a body as a URDF document: a link for the trunk and for each link of the body, a cylinder for each bone, and a joint for each link, which is
// revolute within its range, continuous without a known one, or fixed. Metres and radian; joints have their standard names. Masses are not told, so there are none.
func AppendURDF(dst []byte, b *motionwire.Body) []byte {
	dst = append(dst, "<?xml version=\"1.0\"?>\n<robot name=\""+escaped(b.Model)+"\">\n"...)
	for link := -1; link < len(b.Links); link++ {
		dst = append(dst, `  <link name="`+linkName(link)+"\">\n"...)
		for _, n := range b.Bones {
			if n.Link == link {
				dst = appendBone(dst, n)
			}
		}
		dst = append(dst, "  </link>\n"...)
	}
	for i, l := range b.Links {
		dst = appendJoint(dst, b, i, l)
	}
	return append(dst, "</robot>\n"...)
}

// linkName returns the name of a link; -1 is the trunk.
func linkName(link int) string {
	if link < 0 {
		return "trunk"
	}
	return "link" + strconv.Itoa(link)
}

// appendBone appends a cylinder from one end of a bone to the other. Its own axis is Z, so that it is turned about Y and then about Z.
func appendBone(dst []byte, n motionwire.Bone) []byte {
	var way, middle Vec
	for i := range way {
		way[i] = n.To[i] - n.From[i]
		middle[i] = n.From[i] + way[i]/2
	}
	flat := math.Hypot(way[0], way[1])
	dst = append(dst, `    <visual><origin xyz="`...)
	dst = appendVec(dst, middle)
	dst = append(dst, `" rpy="0 `...)
	dst = appendFixed(dst, math.Atan2(flat, way[2]), 5)
	dst = append(dst, ' ')
	dst = appendFixed(dst, math.Atan2(way[1], way[0]), 5)
	dst = append(dst, `"/><geometry><cylinder radius="`...)
	dst = appendFixed(dst, n.Wide/2, 5)
	dst = append(dst, `" length="`...)
	dst = appendFixed(dst, math.Hypot(flat, way[2]), 5)
	return append(dst, "\"/></geometry></visual>\n"...)
}

func appendJoint(dst []byte, b *motionwire.Body, i int, l motionwire.Link) []byte {
	name, kind, limit := l.Joint, "fixed", ""
	if name == "" {
		name = "fixed" + strconv.Itoa(i)
	} else {
		kind = "continuous"
		for _, j := range b.Joints {
			if j.Name == l.Joint && j.Max > j.Min {
				speed := float64(j.Speed)
				if speed == 0 {
					speed = slow
				}
				fixed := func(v float64) string { return string(appendFixed(nil, v/1e6, 6)) }
				kind, limit = "revolute", `<limit lower="`+fixed(float64(j.Min))+`" upper="`+fixed(float64(j.Max))+`" effort="`+effort+`" velocity="`+fixed(speed)+`"/>`
			}
		}
	}
	dst = append(dst, `  <joint name="`+escaped(name)+`" type="`+kind+`"><parent link="`+linkName(l.Parent)+`"/><child link="`+linkName(i)+`"/><origin xyz="`...)
	dst = appendVec(dst, l.At)
	dst = append(dst, `"/>`...)
	if kind != "fixed" {
		dst = append(dst, `<axis xyz="`...)
		dst = appendVec(dst, l.Axis)
		dst = append(dst, `"/>`...)
	}
	dst = append(dst, limit...)
	return append(dst, "</joint>\n"...)
}

func appendVec(dst []byte, v Vec) []byte {
	for i, x := range v {
		if i > 0 {
			dst = append(dst, ' ')
		}
		dst = appendFixed(dst, x, 5)
	}
	return dst
}

func appendFixed(dst []byte, v float64, digits int) []byte {
	if v == 0 {
		v = 0 // without the sign of a negative zero
	}
	return strconv.AppendFloat(dst, v, 'f', digits, 64)
}
