// SPDX-License-Identifier: Apache-2.0
package sparkdstl.log.failpoints;

import static java.nio.charset.StandardCharsets.UTF_8;

import java.io.IOException;
import java.nio.file.FileAlreadyExistsException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.Paths;
import java.util.ArrayList;
import java.util.List;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import scala.Function0;
import scala.Option;
import scala.concurrent.ExecutionContext;
import scala.concurrent.Future;
import scala.runtime.BoxedUnit;
import sparkdstl.log.format.DataFileReader;
import sparkdstl.log.format.LogFileIndex;
import sparkdstl.log.format.LogLayout;
import sparkdstl.log.request.QueryStorage;
import sparkdstl.log.request.StorageClient;
import sparkdstl.log.storage.ObjectTail;
import sparkdstl.log.storage.StorageOperation;

/**
 * Fail points as the environment variable {@code SPARK_DSTL_FAIL_POINTS} describes them: {@code name=action[@batch]}, several
 * separated by {@code ;}. Actions: {@code pause} blocks the thread until the file {@code name.resume} exists, so a test
 * can act from outside, for instance kill the process; {@code linger} is a pause that swallows interrupts, like the
 * code of a task that continues after it was killed; {@code fail} throws an {@code IOException}. Each fires once across all
 * processes: it first creates the file {@code name} in the directory {@code SPARK_DSTL_FAIL_POINT_DIR}, with the process id as
 * content, and does nothing if that file exists.
 *
 * <p>In Java, because one test jar serves the Sparks of two Scala versions.
 */
public final class ScriptedFailPoints implements FailPoints {
  private static final long POLL_MILLIS = 20;
  private static final Pattern FORM = Pattern.compile("([\\w.-]+)=(pause|linger|fail)(?:@(\\d+))?");

  private static final ExecutionContext OWN_THREAD =
      ExecutionContext.fromExecutor(
          task -> {
            Thread thread = new Thread(task, "dstl-fail-point");
            thread.setDaemon(true);
            thread.start();
          });

  private final List<Matcher> rules = new ArrayList<>();

  public ScriptedFailPoints(String points) {
    for (String point : points.split(";")) {
      Matcher rule = FORM.matcher(point);
      if (!rule.matches()) throw new IllegalArgumentException("not a fail point: " + point);
      rules.add(rule);
    }
  }

  @Override
  public void hit(String name, long batch) {
    for (Matcher rule : rules) {
      boolean isMeant = rule.group(3) == null || Long.parseLong(rule.group(3)) == batch;
      if (rule.group(1).equals(name) && isMeant) {
        try {
          if (createMarker(name)) run(name, rule.group(2));
        } catch (IOException | InterruptedException error) {
          ScriptedFailPoints.<RuntimeException>rethrow(error);
        }
        return;
      }
    }
  }

  @Override
  public <T> Future<T> before(String name, long batch, Function0<Future<T>> action) {
    Future<BoxedUnit> stop =
        Future.apply(
            () -> {
              hit(name, batch);
              return BoxedUnit.UNIT;
            },
            OWN_THREAD);
    return stop.flatMap(done -> action.apply(), OWN_THREAD);
  }

  @Override
  public QueryStorage beforeCommitEntries(QueryStorage storage) {
    StorageClient checkpoint =
        storage
            .checkpoint()
            .pausing(
                operation -> {
                  if (operation instanceof StorageOperation.Create) {
                    org.apache.hadoop.fs.Path path = ((StorageOperation.Create) operation).path();
                    Option<Object> batch = LogLayout.parseBatch(path.getName());
                    if (path.getParent().equals(storage.location().commits()) && batch.isDefined())
                      return before("driver.before-commit-entry", (Long) batch.get(), Future::unit);
                  }
                  return Future.unit();
                });
    return storage.copy(storage.location(), checkpoint, storage.log(), storage.timeoutMillis());
  }

  @Override
  public StorageClient beforeUploads(QueryStorage storage) {
    return storage
        .log()
        .pausing(
            operation -> {
              if (operation instanceof StorageOperation.Put) {
                StorageOperation.Put put = (StorageOperation.Put) operation;
                String name = storage.location().base().toUri().relativize(put.path().toUri()).getPath();
                ObjectTail whole = new ObjectTail(put.content().toArray(), put.content().length());
                LogFileIndex index = DataFileReader.read(put.path(), name, whole).toOption().get();
                if (!index.entries().isEmpty())
                  return before("executor.before-upload", index.entries().head().key().batch(), Future::unit);
              }
              return Future.unit();
            });
  }

  private static Path directory() {
    return Paths.get(System.getenv().getOrDefault("SPARK_DSTL_FAIL_POINT_DIR", "."));
  }

  private static boolean createMarker(String name) throws IOException {
    // Written to a temporary file and linked, so that a process that sees the marker also sees its content.
    Path temporary = Files.createTempFile(directory(), "." + name, ".tmp");
    Files.write(temporary, Long.toString(ProcessHandle.current().pid()).getBytes(UTF_8));
    try {
      Files.createLink(directory().resolve(name), temporary);
      return true;
    } catch (FileAlreadyExistsException taken) {
      return false;
    } finally {
      Files.delete(temporary);
    }
  }

  private static void run(String name, String action) throws IOException, InterruptedException {
    if (action.equals("fail")) throw new IOException("fail point " + name);
    while (!Files.exists(directory().resolve(name + ".resume"))) {
      try {
        Thread.sleep(POLL_MILLIS);
      } catch (InterruptedException interrupt) {
        if (!action.equals("linger")) throw interrupt;
      }
    }
  }

  /** Scala's methods declare no exceptions. */
  @SuppressWarnings("unchecked")
  private static <E extends Throwable> void rethrow(Throwable error) throws E {
    throw (E) error;
  }
}
