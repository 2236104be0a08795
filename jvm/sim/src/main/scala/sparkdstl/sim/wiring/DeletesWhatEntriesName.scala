package sparkdstl.sim.wiring

import scala.concurrent.{ExecutionContext, Future}
import scala.util.Try

import org.apache.hadoop.fs.Path

import sparkdstl.log.format.{CommitEntry, EntryInspection}
import sparkdstl.log.request.{ForwardingStorageClient, Outcome, StorageClient}
import sparkdstl.log.storage.ObjectTail

/** Storage on which with an entry all goes that it names. */
private[wiring] final class DeletesWhatEntriesName(client: StorageClient) extends ForwardingStorageClient(client) {
  private implicit val executor: ExecutionContext = ExecutionContext.parasitic
  private val location = ProtocolWiring.Location

  override def delete(paths: Seq[Path], timeoutMillis: Long): Future[Outcome[Unit]] =
    Future.sequence(paths.filter(_.getParent.getName == "commits").map(named(_, timeoutMillis)))
      .flatMap(files => client.delete(paths ++ files.flatten, timeoutMillis))

  private def named(entry: Path, timeoutMillis: Long): Future[Set[Path]] =
    client.read(entry, 1L << 20, timeoutMillis).map {
      case Outcome.Done(Some(bytes)) =>
        Try(CommitEntry.inspect(entry, ObjectTail(bytes, bytes.length.toLong))).toOption.collect {
          case EntryInspection.Whole(index, _) =>
            index.entries.flatMap(_.parts).flatMap(_.file).map(location.file).toSet
        }.getOrElse(Set.empty)
      case _ => Set.empty
    }
}
