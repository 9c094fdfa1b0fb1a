"""Runs of the project's own code that the command itself says update files: possible writes, and no silence."""

from __future__ import annotations

from pathlib import Path

import pytest

from swarm_hook_core.shell import effects_of

UPDATERS = r"""
jest -u
npx jest -u
npx jest --updateSnapshot
yarn jest -u
npm test -- -u
npm test -- --updateSnapshot
yarn test -u
pnpm test -u
vitest -u
npx vitest run --update
vitest run -u
npx playwright test --update-snapshots
playwright test -u
pytest --snapshot-update
pytest --force-regen
python -m pytest --snapshot-update tests
python3 -m pytest --inline-snapshot=fix
uv run pytest --snapshot-update
go test ./... -update
go test -run TestX -update-golden ./pkg
UPDATE_EXPECT=1 cargo test
env UPDATE_EXPECT=1 cargo test
export UPDATE_EXPECT=1; cargo test
INSTA_UPDATE=always cargo test
TRYBUILD=overwrite cargo test
cargo insta accept
cargo insta review
cargo insta test --accept
./gradlew spotlessApply
gradle spotlessApply
mvn spotless:apply
mvn versions:set -DnewVersion=2
mvnw versions:use-latest-versions
changeset version
npx changeset version
npm run lint -- --fix
yarn lint --fix
pnpm run lint --fix
npm run lint:fix
npm run format
make fmt
make generate
make update-snapshots
just regen
cargo fix --allow-dirty
cargo clippy --fix
rake db:migrate
rails db:migrate
bin/rails db:migrate
bundle exec rails db:migrate
rails generate model User
rails g model User
bundle exec rake db:migrate
alembic revision --autogenerate -m x
prisma migrate dev
npx prisma migrate dev
go generate ./...
ng generate component x
npx nx g @nx/react:lib x
lerna version patch
npx lerna version
mix ecto.gen.migration add
mix ecto.migrate
flask db migrate
django-admin makemigrations
python manage.py makemigrations
php artisan make:model X
dotnet ef migrations add X
dune promote
dune test --auto-promote
cabal test --test-options=--accept
sbt scalafmtAll
deno test -- --update
bun test -u
bun test --update-snapshots
node --test --test-update-snapshots
gradle dependencies --write-locks
BLESS=1 make test
hugo new posts/x.md
flutter create .
ava -u
npx sb upgrade
pytest --record-mode=rewrite
composer run fix
turbo gen
poetry run pytest --snapshot-update
tox -e py -- --snapshot-update
npx tsx scripts/generate.ts
""".strip().split("\n")
TESTS_AND_BUILDS = r"""
jest
npx jest --ci
npm test
yarn test
pytest
pytest tests/test_update.py
pytest -k update
go test ./...
go test -run TestUpdate ./...
cargo test update_snapshot
cargo test
INSTA_UPDATE=no cargo test
UPDATE_EXPECT=0 cargo test
npm run lint
npm run build
npm run format:check
npm run check-format
make test
make build
mvn -U test
mvn --update-snapshots verify
mvn versions:display-dependency-updates
gradle build
gradle spotlessCheck
vitest run
vitest list
playwright test
npx playwright test --reporter=list
rails test
rake test
python -u -m pytest
mix test
npm run dev
make -n generate
lerna run test
cargo build --release
make lint
nx test app
npm test -- --no-update
""".strip().split("\n")


@pytest.mark.parametrize("command", UPDATERS)
def test_what_says_that_it_updates_files_may_write(command: str, tmp_path: Path) -> None:
    found = effects_of(command, str(tmp_path), {})
    assert [guess.folder for guess in found.guesses] and not found.writes, "told beside locks, and not denied"


@pytest.mark.parametrize("command", TESTS_AND_BUILDS)
def test_tests_and_builds_are_the_projects_own_code(command: str, tmp_path: Path) -> None:
    assert [guess.why for guess in effects_of(command, str(tmp_path), {}).guesses] == []


def test_the_reason_names_the_word_that_says_it(tmp_path: Path) -> None:
    def why(command: str) -> str:
        return effects_of(command, str(tmp_path), {}).guesses[0].why

    assert why("npx jest -u") == "`-u` updates files"
    assert why("UPDATE_EXPECT=1 cargo test") == "`UPDATE_EXPECT` has files updated"
    assert why("make fmt") == "`fmt` changes files"
