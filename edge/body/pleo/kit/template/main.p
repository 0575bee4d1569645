// The main script: LifeOS calls main again and again.
#include <Motion.inc>
#include <Script.inc>

#include "motions.inc"

main()
{
	motion_play(mot_bow);
	while (motion_is_playing(mot_bow))
		sleep 100;
	sleep 10000;
}
