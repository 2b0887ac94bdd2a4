"""``python -m nodewise._call FILE``: calls the function of a study, and prints how long that took."""

import pickle
import runpy
import sys
import time


def main(path: str) -> None:
    with open(path, "rb") as file:
        what = pickle.load(file)
        sys.path[:] = what["path"]
        if what["script"] is None:
            function = pickle.load(file)
        else:
            # Under another name than __main__: what a script does when it is started is not done again.
            function = runpy.run_path(what["script"], run_name="__nodewise__")[what["name"]]
    begun = time.perf_counter()
    function()
    print(f"nodewise-seconds {time.perf_counter() - begun!r}", flush=True)


if __name__ == "__main__":
    main(sys.argv[1])
