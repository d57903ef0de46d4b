/* Knows `srun --auto-resume=N`, as the plugin of HyperPod's image does, and does nothing with it. */
#include <slurm/spank.h>
#include <stdlib.h>

SPANK_PLUGIN(auto_resume, 1)

static int chosen(int value, const char *text, int remote)
{
	(void)value;
	(void)remote;
	if (text && (text[0] == '0' || text[0] == '1') && !text[1])
		return ESPANK_SUCCESS;
	slurm_error("auto-resume: 0 or 1, not %s", text ? text : "nothing");
	return ESPANK_BAD_ARG;
}

static struct spank_option option = {
	"auto-resume", "0|1", "Resume the step on another node.", 1, 0, chosen,
};

int slurm_spank_init(spank_t spank, int count, char **arguments)
{
	(void)count;
	(void)arguments;
	/* HyperPod's is an option of srun only; salloc and sbatch refuse it. */
	return spank_context() == S_CTX_ALLOCATOR ? ESPANK_SUCCESS : spank_option_register(spank, &option);
}
