"""Every route at every address that TensorBoard may be served at."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tb_pastnet.serve.routes import ROUTES
from tests.contract.test_every_status import good
from tests.contract.test_http_api import sample_log
from tests.tensorboards import LOADERS, PREFIX, board


@pytest.mark.promise("prefixes")
@pytest.mark.parametrize("loader", LOADERS)
def test_path_prefix_and_experiment(
    tmp_path: Path, loader: str, figure: Callable[..., None]
) -> None:
    sample_log(tmp_path)
    count = 0
    with board(tmp_path, loader, "--path_prefix", "/some/where") as here:
        for prefix in ("/some/where", "/some/where/experiment/x"):
            for route in ROUTES:
                response = here.client.get(f"{prefix}{PREFIX}{route}", query_string=good(route))
                assert response.status_code == 200, response.get_data(as_text=True)
                count += 1
            listing = here.client.get(f"{prefix}/data/plugins_listing").json["pastnet"]
            assert listing["enabled"]
            assert listing["tab_name"] == "PastNet"
            path = listing["loading_mechanism"]["module_path"]
            assert path.startswith("/some/where")
            assert here.client.get(path).status_code == 200
        for elsewhere in (PREFIX, f"/some{PREFIX}"):
            assert here.client.get(f"{elsewhere}/index").status_code == 404
    figure(f"--path_prefix and /experiment/ID, {loader} loader: {count} answers, 0 of 404")
