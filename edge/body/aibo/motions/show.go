package motions

import (
	"kennel/edge/body/aibo"
	"kennel/edge/body/aibo/mtn"
	"kennel/infra/api/motionwire"
)

// Show returns a motion as drawings have it, and the angles of all joints of the model in rad in the posture in which the motion begins, by standard names, for the
// joints that it does not list; a posture that is not known is standing. Errors: ErrModel.
func Show(f *mtn.File, m aibo.Model) (*motionwire.Sequence, map[string]float64, error) {
	motion, err := Motion(f, m, false)
	if err != nil {
		return nil, nil, err
	}
	n := mtn.ParseName(f.Name)
	at, known := Posture(m, n.Start)
	if !known {
		at, _ = Posture(m, "stand")
	}
	base := map[string]float64{}
	for i, j := range joints(m) {
		base[j.Path] = float64(at[i]) / 1e6
	}
	name := n.Description
	if name == "" {
		name = f.Name
	}
	return shownMotion(f, motion, name), base, nil
}
