package sparkdstl.log.storage

import java.io.{FileNotFoundException, IOException}

import org.apache.hadoop.fs.FileAlreadyExistsException
import org.apache.hadoop.security.AccessControlException
import org.scalatest.funsuite.AnyFunSuite

class StorageErrorsSuite extends AnyFunSuite {

  /** As S3A's service exceptions are: the status is a method's answer. */
  class ServiceException(status: Int) extends IOException("service said no") {
    def statusCode(): Int = status
  }

  class RemoteFileChangedException extends IOException("changed")

  test("a conflict is told by class, status method or message, also in a cause") {
    Seq(
      new FileAlreadyExistsException("x"),
      new java.nio.file.FileAlreadyExistsException("x"),
      new RemoteFileChangedException,
      new ServiceException(412),
      new IOException("At least one of the pre-conditions did not hold (Service: S3, Status Code: 412, Request ID: 1)"),
      new IOException("wrapped", new ServiceException(412))
    ).foreach(error => assert(StorageErrors.meansAlreadyExists(error), error))
  }

  test("other errors are no conflict") {
    Seq(new ServiceException(503), new IOException("412 bytes missing"), new FileNotFoundException("x"))
      .foreach(error => assert(!StorageErrors.meansAlreadyExists(error), error))
  }

  test("a request that met another one under way is told apart from a conflict") {
    assert(StorageErrors.meansConcurrentRequest(new ServiceException(409)))
    assert(!StorageErrors.meansAlreadyExists(new ServiceException(409)))
    assert(!StorageErrors.meansConcurrentRequest(new ServiceException(412)))
  }

  test("what cannot succeed the next time is not retried") {
    Seq(
      new FileAlreadyExistsException("x"),
      new AccessControlException("no"),
      new java.nio.file.AccessDeniedException("no"),
      new IllegalArgumentException("bad"),
      new IOException("/x: File name too long"),
      new ServiceException(401),
      // As S3A's analytics streams say it.
      new IOException(
        "Server error accessing s3://b/x, request failed with: Access Denied. (Service: S3, Status Code: 403)"
      )
    ).foreach(error => assert(!StorageErrors.isRetryable(error), error))
  }

  test("passing errors are retried") {
    Seq(
      new IOException("reset"),
      new ServiceException(503),
      new FileNotFoundException("x"),
      new IOException(null: String)
    ).foreach(error => assert(StorageErrors.isRetryable(error), error))
  }

  test("storage's own refusals are definite") {
    Seq(
      new FileAlreadyExistsException("x"),
      new AccessControlException("no"),
      new FileNotFoundException("x"),
      new UnsupportedOperationException("x"),
      new IOException("/x: File name too long"),
      new AttemptNotMade("no thread"),
      new ServiceException(400),
      new ServiceException(412),
      new IOException("wrapped", new ServiceException(403))
    ).foreach(error => assert(StorageErrors.isDefinite(error), error))
  }

  test("what is no answer, or one about another request, leaves open what became of a write") {
    Seq(
      new IOException("reset"),
      new java.io.InterruptedIOException("interrupted"),
      new IOException("wrapped", new FileNotFoundException("x")),
      new ServiceException(500),
      new ServiceException(503),
      new ServiceException(408),
      new ServiceException(409),
      new OutOfMemoryError("heap")
    ).foreach(error => assert(!StorageErrors.isDefinite(error), error))
  }

  /** As S3A's is. */
  class UnknownStoreException extends FileNotFoundException("no such bucket")

  test("a missing bucket is not a missing object") {
    assert(StorageErrors.meansMissing(new FileNotFoundException("x")))
    assert(!StorageErrors.meansMissing(new UnknownStoreException))
    assert(!StorageErrors.meansMissing(new IOException("x")))
  }
}
