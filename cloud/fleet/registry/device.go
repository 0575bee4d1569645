package registry

// UpdaterBoot is the boot id in the statuses of a device of which only the updater (SWUpdate) calls here: no agent runs on it.
const UpdaterBoot = "ddi"

// CodeDeviceToken refuses an updater that does not prove which device it is on.
const CodeDeviceToken = "device_token"

// device reports whether only an updater of the thing calls here.
func (f *facts) device() bool {
	if m := f.status(); m != nil {
		return m.BootID == UpdaterBoot
	}
	return f.last(StepBroker, StepStatus) == nil && f.last(StepUpdater) != nil
}

// updater says whether the updater of a device is let in.
func (f *facts) updater() (Check, bool) {
	c := Check{Name: "updater", Level: OK, Text: "asks for updates here"}
	o := f.last(StepUpdater)
	switch {
	case o != nil && !o.OK && (f.thing == nil || o.Last.After(f.thing.LastSeen)):
		c.Level, c.Do = Fail, advice[o.Code]
		return c.refused(o, "its updater was refused"), true
	case !f.everSeen():
		c.Level, c.Text = Unknown, "has not asked for updates yet"
	}
	return c, true
}
